"""Build, test and publish disk images with a release installed: Azure, AWS, QEMU."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from mvstack.cli import options
from mvstack.image import flow, manifest
from mvstack.image.boot import Spend, boot_test
from mvstack.image.flow import Asked
from mvstack.image.job import Wanted
from mvstack.image.life import delete_image, deprecate_image, replicate_image
from mvstack.image.papers import MANIFEST
from mvstack.image.publish import Target, publish_image
from mvstack.image.sign import verify as check
from mvstack.image.validation import validate_images
from mvstack.image.vm import Machine
from mvstack.support.console import say
from mvstack.support.errors import CheckFailed, InvalidInput, Problem

app = options.commands(__doc__)
Images = Annotated[
    Path | None,
    Option(
        "--images",
        metavar="DIR",
        envvar="MVSTACK_IMAGES",
        help="Folder of images; else ROOT/images.",
    ),
]
Settings_ = Option(
    "--settings", metavar="FILE", help="JSON file of Packer variables: subscription, gallery, …"
)
Settings = Annotated[Path | None, Settings_]
Version = Annotated[str | None, Option("--version", help="Image version, e.g. 2026.11.0.")]
Last = Option(formats=["%Y-%m-%d"], metavar="DAY", help="Last day of use, as 2027-06-30.")
Size = Annotated[
    str, Option("--size", help="Another size of machine that the image serves (docs/images.md).")
]
Signer = Annotated[
    str,
    Option(
        "--key",
        metavar="KEY",
        help="Fingerprint of a GPG key to sign with, if there are several; or cosign:KEY, a file "
        "or KMS address that cosign takes.",
    ),
]
Where = Annotated[str | None, Option("--cloud", help="Look in a cloud: aws or azure.")]


def _told(version: Any, as_json: bool) -> None:
    counts = version.data.get("tests") or {}
    tests = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    lines = [f"{version.title}: {version.state}" + (f"; tests: {tests}" if tests else "")]
    if said := version.data.get("vulnerabilities"):
        lines.append(f"vulnerabilities: {said['state']} ({said['why']})")
    if not version.data.get("signed", True):
        lines.append(f"not signed: {version.data.get('why_unsigned', '')}")
    data = {**version.data, "folder": str(version.folder)}
    say(data, as_json, *lines, str(version.folder))


@app.command(
    epilog="Examples: mvstack image build qemu-debian12/mpich   ·   "
    "mvstack image build azure-hbv4 --settings site.json"
)
def build(
    system: options.System,
    asked: Version = None,
    settings: Settings = None,
    packages: Annotated[
        Path | None, Option(help="Exact versions: packages.txt of an earlier build.")
    ] = None,
    packed: Annotated[
        Path | None,
        Option(metavar="DIR", help="Release packed by `image pack`, on a machine of its own OS."),
    ] = None,
    with_test: Annotated[
        bool, Option("--test/--no-test", help="Start and test the image (QEMU).")
    ] = True,
    last: Annotated[datetime | None, Last] = None,
    release: options.ReleaseName = None,
    root: options.Root = None,
    images: Images = None,
    jobs: options.Jobs = None,
    yes: options.Yes = False,
    key: Signer = "",
    as_json: options.Json = False,
) -> None:
    """Build the image of a partition. Run again after an interruption: it resumes."""
    version = flow.build_image(
        Asked(system, release, root, images, key),
        Wanted(asked, settings, packages, packed, last=last.date() if last else None),
        options.progress(as_json),
        jobs=jobs,
        yes=yes,
        test=with_test,
    )
    _told(version, as_json)


@app.command(epilog="Example: mvstack image pack azure-hbv4/hpc --to /shared/azure-hbv4-hpc")
def pack(
    system: options.System,
    to: Annotated[Path, Option(metavar="DIR", help="New folder to write.")],
    release: options.ReleaseName = None,
    root: options.Root = None,
    key: options.Key = "",
    as_json: options.Json = False,
) -> None:
    """Pack and sign an installed release, to build its image on a machine of another OS."""
    asked = Asked(system, release, root, key=key)
    done = flow.pack_release(asked, to, options.progress(as_json))
    say(done, as_json, f"{done['folder']}: {done['sha256']}, signed by {done['signer']}")


@app.command(
    epilog="Examples: mvstack image test qemu-debian12/mpich   ·   "
    "mvstack image test azure-hbv4 --host azureuser@10.1.0.4"
)
def test(
    system: options.System,
    asked: Version = None,
    host: Annotated[
        list[str] | None,
        Option(help="Machine of a cloud's image, as ssh knows it; MPI runs among several."),
    ] = None,
    ssh_config: Annotated[Path | None, Option(help="ssh's configuration file for it.")] = None,
    size: Size = "",
    release: options.ReleaseName = None,
    root: options.Root = None,
    images: Images = None,
    key: Signer = "",
    as_json: options.Json = False,
) -> None:
    """Run all tests on a machine of the image, which is rebooted; sign the image if they pass."""
    where = Asked(system, release, root, images, key, size)
    machines = [Machine(one, ssh_config) for one in host or ()]
    version = flow.test_image(where, asked, options.progress(as_json), machines)
    _told(version, as_json)


@app.command(
    "boot-test",
    epilog="Example: mvstack image boot-test azure-hbv4/hpc --settings site.json --budget 20",
)
def boot_test_(
    system: options.System,
    settings: Annotated[Path, Settings_],
    budget: Annotated[
        float, Option(min=0, help="Most it may cost, in the currency of FILE's prices.")
    ],
    minutes: Annotated[int, Option(min=1, help="Most minutes it may take.")] = 60,
    nodes: Annotated[int, Option(min=1, help="Machines to start; MPI runs among them.")] = 2,
    size: Size = "",
    asked: Version = None,
    root: options.Root = None,
    images: Images = None,
    key: Signer = "",
    as_json: options.Json = False,
) -> None:
    """Start machines of the image's size in its cloud, run all tests on them, and end them."""
    where = Asked(system, root=root, images=images, key=key, size=size)
    spend = Spend(nodes, minutes, budget)
    _told(boot_test(where, asked, settings, spend, options.progress(as_json)), as_json)


@app.command(
    epilog="Examples: mvstack image publish qemu-debian12/mpich --to /srv/images   ·   "
    "mvstack image publish aws-hpc7a --settings site.json --region us-east-2 --share 123456789012"
)
def publish(
    system: options.System,
    asked: Version = None,
    to: Annotated[Path | None, Option(help="Folder to copy it to (QEMU).")] = None,
    settings: Settings = None,
    region: Annotated[list[str] | None, Option(help="Region (repeatable).")] = None,
    share: Annotated[
        list[str] | None, Option(help="AWS account that may use it (repeatable).")
    ] = None,
    unknown: Annotated[
        bool, Option("--vulnerabilities-unknown", help="Publish without a vulnerability check.")
    ] = False,
    root: options.Root = None,
    images: Images = None,
    as_json: options.Json = False,
) -> None:
    """Publish a tested version. A published version never changes."""
    where = Asked(system, root=root, images=images)
    target = Target(to, settings, region or (), share or ())
    done = publish_image(where, asked, target, unknown, options.progress(as_json))
    say(done, as_json, f"{done['image']} {done['version']}: published to {_places(done)}")


def _places(done: dict[str, Any]) -> str:
    return ", ".join(f"{k} {v}" for k, v in done.items() if k not in ("image", "version"))


Published = Annotated[str, Option("--version", help="Image version, e.g. 2026.11.0.")]
Copies = Annotated[
    list[str] | None,
    Option("--region", help="AWS region with a copy that FILE does not name (repeatable)."),
]


@app.command(
    epilog="Example: mvstack image replicate aws-hpc7a eu-north-1 --version 2026.11.0 "
    "--settings site.json"
)
def replicate(
    system: options.System,
    regions: Annotated[list[str], Argument(metavar="REGION…", help="Regions of its cloud.")],
    version: Published,
    settings: Settings = None,
    as_json: options.Json = False,
) -> None:
    """Bring a published version to more regions of its cloud."""
    done = replicate_image(Asked(system), version, regions, settings)
    say(done, as_json, f"{done['image']} {version}: in {_places(done)}")


@app.command(
    epilog="Example: mvstack image deprecate aws-hpc7a --version 2026.11.0 --last 2027-06-30 "
    "--settings site.json"
)
def deprecate(
    system: options.System,
    version: Published,
    last: Annotated[datetime, Last],
    settings: Settings = None,
    region: Copies = None,
    as_json: options.Json = False,
) -> None:
    """Set the last day of a version published in a cloud. Until it is deleted it still starts."""
    done = deprecate_image(Asked(system), version, last.date(), settings, region or ())
    say(done, as_json, f"{done['image']} {version}: to be used until {done['end_of_life']}")


@app.command(
    epilog="Example: mvstack image delete aws-hpc7a --version 2026.11.0 --settings site.json"
)
def delete(
    system: options.System,
    version: Published,
    settings: Settings = None,
    region: Copies = None,
    as_json: options.Json = False,
) -> None:
    """Delete a deprecated version from its cloud, once its last day is over."""
    done = delete_image(Asked(system), version, settings, region or ())
    say(done, as_json, f"{done['image']} {version}: deleted from {_places(done)}")


@app.command("list", epilog="Examples: mvstack image list   ·   mvstack image list --cloud aws")
def list_(
    where: Where = None,
    settings: Settings = None,
    root: options.Root = None,
    images: Images = None,
    as_json: options.Json = False,
) -> None:
    """List images built here or held by a cloud, with their state and test results."""
    rows = flow.list_images(Asked(root=root, images=images), where, settings)
    lines = []
    for row in rows:
        rest = [f"{k} {v}" for k, v in row.items() if k not in ("image", "version", "state") and v]
        lines.append(f"{row['image']} {row['version']}: {row['state']}; {'; '.join(rest)}")
    say(rows, as_json, *(lines or ["no images; build one with `mvstack image build SYSTEM`"]))


@app.command(
    epilog="Examples: mvstack image clean   ·   "
    "mvstack image clean --cloud azure --settings site.json --yes"
)
def clean(
    where: Where = None,
    settings: Settings = None,
    yes: Annotated[bool, Option("--yes", help="Remove; without it, only list.")] = False,
    older: Annotated[
        float,
        Option(
            "--older-than",
            min=0,
            help="Hours since the build started; in a cloud, one may still run elsewhere.",
        ),
    ] = 12,
    root: options.Root = None,
    images: Images = None,
    as_json: options.Json = False,
) -> None:
    """List what failed builds left behind; remove it with --yes."""
    asked = Asked(root=root, images=images)
    rows = flow.clean_images(asked, where, settings, yes, older, options.progress(as_json))
    lines = []
    for row in rows:
        size = f", {row['bytes'] / 1e6:.0f} MB" if "bytes" in row else ""
        done = "removed" if yes else "left"
        lines.append(f"{done}: {row['kind']} {row['id']} ({row['image']}{size})")
    end = [] if rows and yes else ["run again with --yes to remove" if rows else "nothing to clean"]
    say(rows, as_json, *lines, *end)


@app.command(epilog="Examples: mvstack image validate   ·   mvstack image validate aws-p5")
def validate(systems: options.Systems = None, as_json: options.Json = False) -> None:
    """Run `packer validate` on the templates, with each image's variables."""
    done = validate_images(systems or [], options.progress(as_json))
    valid = [name for name, why in done.items() if not why]
    not_checked = (
        f"not checked: {', '.join(name for name in done if done[name] == why)}; {why}"
        for why in sorted(set(done.values()) - {""})
    )
    said = f"{len(valid)} image{'s are' if len(valid) != 1 else ' is'} valid"
    say(done, as_json, said, *not_checked)


@app.command(epilog="Example: mvstack image compare …/2026.11.0 …/2026.11.1")
def compare(
    first: Annotated[Path, Argument(metavar="FIRST", help="Folder of a version.")],
    second: Annotated[
        Path, Argument(metavar="SECOND", help="Folder of another, from the same inputs.")
    ],
    as_json: options.Json = False,
) -> None:
    """Compare two builds file by file. images/not-reproducible.yaml lists what may differ."""
    for folder in (first, second):
        if not (folder / MANIFEST).is_file():
            raise InvalidInput(
                f"no {MANIFEST} in this folder" if folder.is_dir() else "there is no such folder",
                str(folder),
                todo="name the folders of two QEMU images (`mvstack image list`); images of "
                "a cloud have no manifest",
            )
    one, two = (manifest.read(folder / MANIFEST) for folder in (first, second))
    found = manifest.compare(one, two, manifest.read_declared())
    bad = [row for row in found if row.fails]
    rows = (
        f"{'DIFFERS' if row.fails else 'expected'}: {row.path}: {row.what}; {row.why}"
        for row in found
    )
    count = f"{len(one)} files; {len(found) - len(bad)} expected differences, {len(bad)} others"
    data = {"files": len(one), "differences": [dict(row.__dict__) for row in found]}
    failed = CheckFailed(
        *(Problem(row.what, row.path, found=row.second, allowed=row.first) for row in bad[:20]),
        outcome=f"{len(bad)} unexpected differences.",
    )
    say(data, as_json, *rows, count, failed=failed)


@app.command(epilog="Example: mvstack image verify /srv/images/qemu-debian12-mpich/2026.11.0")
def verify(
    folder: Annotated[
        Path, Argument(metavar="FOLDER", help="Folder of a version, here or copied.")
    ],
    as_json: options.Json = False,
) -> None:
    """Check that an image is complete, unchanged, and signed by a trusted key."""
    if not folder.is_dir():
        todo = "`mvstack image list` shows them"
        raise InvalidInput("there is no such folder", str(folder), todo=todo)
    found = check(folder)
    said = f"{len(found.files)} files unchanged, signed by {found.signer}"
    say({"signer": found.signer, "files": found.files}, as_json, said)
