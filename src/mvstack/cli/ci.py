"""Make GitLab pipelines that build, check and deploy what a change touches."""

import os
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Option

from mvstack.cache.use import cache_names
from mvstack.ci import generate as ci
from mvstack.ci import sites, steps
from mvstack.ci.handover import Given
from mvstack.ci.pipeline import Context
from mvstack.ci.words import as_data, explained
from mvstack.cli import options
from mvstack.model.ci import TREE_LENGTH, load_settings
from mvstack.support.console import say
from mvstack.support.git import commit_of
from mvstack.test.run import failed_checks

app = options.commands(__doc__)
SettingsFile = Annotated[
    Path, Option("--settings", metavar="FILE", help="Settings file of the project.")
]
Take = Annotated[
    list[Path] | None,
    Option("--take", metavar="DIR", help="Folder with what other jobs built; may be repeated."),
]
Trust = Annotated[
    list[Path] | None,
    Option(
        "--trust", metavar="FILE", help="Public key of a site (`cache keys export`); repeatable."
    ),
]
Compilers = Annotated[
    str, Option(metavar="DIR", help="Folder of compilers that Spack builds for pipelines.")
]
SETTINGS = Path("mvstack-ci.yaml")


@app.command(
    epilog="Examples: mvstack ci generate --change origin/main   ·   "
    "mvstack ci generate --settings mvstack-ci.yaml --schedule nightly"
)
def generate(
    settings: SettingsFile = SETTINGS,
    change: Annotated[
        str | None, Option(help="Commit to compare with; else the one that GitLab names.")
    ] = None,
    to: Annotated[
        Path, Option(help="Folder to write the pipelines to; replaced if it exists.")
    ] = Path("ci-pipelines"),
    schedule: Annotated[
        Literal["nightly", "weekly"] | None,
        Option(help="Check what is deployed instead, with the tags of this schedule."),
    ] = None,
    everything: Annotated[
        bool, Option("--all", help="Make every partition, whatever changed.")
    ] = False,
    profile: options.Profile = None,
    as_json: options.Json = False,
) -> None:
    """Say what a change builds, checks and deploys, and write the pipelines that do it."""
    found = load_settings(settings)
    project, file = sites.project_of(settings)
    trusted, why = ci.trust_of(os.environ)
    context = Context(
        found,
        trusted=trusted,
        url=os.environ.get("MVSTACK_URL", ""),
        commit=os.environ.get("MVSTACK_COMMIT", ""),
        folder=to.name,
        tag=os.environ.get("MVSTACK_TAG", ""),
        profile=profile or "",
    )
    sites.same_pin(project, context.commit)
    base = ci.base_of(os.environ) if change is None else change
    notes = []
    if change is None and base and not commit_of(project, base):
        notes.append("the previous commit no longer exists (a force push?): everything is new")
        base = ""
    made = ci.generate(project, file, context, ci.Wanted(base, schedule or "", everything))
    sites.write({**made.pipelines.files, **made.pipelines.locks}, to)
    notes += made.notes
    data = as_data(made.against, made.todos, made.pipelines.jobs)
    data |= {"trusted": context.trusted, "why": why, "files": sorted(made.pipelines.files)}
    data |= {"unserved": made.unserved, "notes": notes}
    lines = [f"note: {note}" for note in notes]
    if schedule:
        lines.append(f"{made.against}: checks of what is deployed")
    else:
        lines.append(explained(made.against, made.todos, made.pipelines.jobs))
    lines.append(f"can sign and deploy: {'yes' if context.trusted else 'no'}, {why}")
    say(data, as_json, *lines)


def _told(rows: list[dict[str, Any]], as_json: bool, *more: str) -> None:
    """The rows as JSON, or how many packages came from where, and ``more``."""
    counts = Counter(row["result"] for row in rows)
    said = ", ".join(f"{count} {result}" for result, count in counts.items())
    say(rows, as_json, said or "nothing to do: everything is there", *more)


@app.command(epilog="Example: mvstack ci build azure-hbv4/hpc --node GCC-12.2.0.eb --hand gcc")
def build(
    partition: options.Partition,
    node: Annotated[
        list[str], Option(help="Easyconfig, Spack hash or `compiler`; may be repeated.")
    ],
    hand: Annotated[Path, Option(help="Folder to put what was built into, as a cache.")],
    take: Take = None,
    trust: Trust = None,
    cache: options.Caches = None,
    jobs: options.Jobs = None,
    logs: Annotated[Path | None, Option(help="Folder to copy the build logs to.")] = None,
    root: Annotated[
        Path | None, Option(help="Folder to build in and keep; else a temporary.")
    ] = None,
    tree_length: Annotated[
        int, Option(min=40, max=TREE_LENGTH, help="Length of the path to build in.")
    ] = TREE_LENGTH,
    profile: options.Profile = None,
    compilers: Compilers = "",
    as_json: options.Json = False,
) -> None:
    """Build some packages of a partition on top of what other jobs built, and hand them on."""
    given = Given(take or [], cache_names(cache or []), trust or [])
    job = steps.Job(partition, options.progress(as_json), given, profile or "", compilers)
    rows = steps.build_job(job, steps.Building(node, hand, jobs, logs, root, tree_length))
    _told(rows, as_json)


@app.command(epilog="Example: mvstack ci stage azure-hbv4/hpc --take handover --root /staging/1")
def stage(
    partition: options.Partition,
    root: Annotated[Path, Option(help="Folder to install to; the cluster's nodes must see it.")],
    take: Take = None,
    trust: Trust = None,
    cache: options.Caches = None,
    profile: options.Profile = None,
    compilers: Compilers = "",
    as_json: options.Json = False,
) -> None:
    """Install a whole partition from what was built and from caches; build nothing."""
    given = Given(take or [], cache_names(cache or []), trust or [])
    job = steps.Job(partition, options.progress(as_json), given, profile or "", compilers)
    _told(steps.stage_job(job, root), as_json)


@app.command(epilog="Example: mvstack ci validate azure-hbv4/hpc --root /staging/1 --to validate")
def validate(
    partition: options.Partition,
    root: Annotated[Path, Option(help="Where the partition is installed.")],
    to: Annotated[Path, Option(help="Folder for results.json and junit.xml.")],
    tag: options.Tags = None,
    work: Annotated[
        Path | None, Option(help="Folder to run in; the nodes must see it. Else below the root.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Run the checks through the site's scheduler, and write reports that GitLab shows."""
    results = steps.validate_job(partition, root, tag or [], work, to, options.progress(as_json))
    say(results, as_json, options.passed(results), failed=failed_checks(results))


@app.command(epilog="Example: mvstack ci sign azure-hbv4/hpc --take handover --to /shared/cache")
def sign(
    partition: options.Partition,
    to: Annotated[str, Option(help="The site's cache: a folder, or file://…")],
    take: Take = None,
    key: options.Key = "",
    profile: options.Profile = None,
    compilers: Compilers = "",
    as_json: options.Json = False,
) -> None:
    """Sign what was built with the site's key (MVSTACK_SIGNING_KEY) and put it into its cache."""
    given = Given(take or [])
    job = steps.Job(partition, options.progress(as_json), given, profile or "", compilers)
    own, rows = steps.sign_job(job, to, key)
    _told(rows, as_json, f"signed with {own.fingerprint}")


@app.command(epilog="Example: mvstack ci deploy azure-hbv4/hpc --root /apps/stack --cache /cache")
def deploy(
    partition: options.Partition,
    root: Annotated[Path, Option(help="The shared tree to install to.")],
    cache: Annotated[list[str], Option(help="The site's signed cache; may be repeated.")],
    trust: Trust = None,
    results: Annotated[
        Path | None, Option(help="Folder that `ci validate --to` wrote, to keep with the tree.")
    ] = None,
    state: Annotated[
        str, Option(help="Hash to record in the first cache as what is deployed.")
    ] = "",
    profile: options.Profile = None,
    compilers: Compilers = "",
    as_json: options.Json = False,
) -> None:
    """Install a partition into the shared tree, from signed packages only."""
    given = Given((), cache, trust or [])
    job = steps.Job(partition, options.progress(as_json), given, profile or "", compilers)
    _told(steps.deploy_job(job, root, results, state), as_json)
