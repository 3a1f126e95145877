"""``mvstack ci``: make the pipelines of a change, and the steps that their jobs run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mvstack.support.errors import InvalidInput, Problem

if TYPE_CHECKING:
    from mvstack.support.progress import Progress

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="GitLab pipelines from plans: what a change builds, checks, deploys; the jobs' steps.",
)
SETTINGS = "mvstack-ci.yaml"

Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]


@app.command(
    epilog="Examples: mvstack ci generate --change origin/main   ·   "
    "mvstack ci generate --settings mvstack-ci.yaml --schedule nightly"
)
def generate(
    settings: Annotated[Path, typer.Option(help="The settings file, in the project.")] = Path(
        SETTINGS
    ),
    change: Annotated[
        str | None,
        typer.Option(help="What to compare with; else what GitLab says the change is against."),
    ] = None,
    to: Annotated[Path, typer.Option("--to", help="Folder of the pipelines, made anew.")] = Path(
        "ci-pipelines"
    ),
    schedule: Annotated[str, typer.Option(help="nightly or weekly: check what is deployed.")] = "",
    everything: Annotated[
        bool, typer.Option("--all", help="Make every partition, whatever changed.")
    ] = False,
    locks: Annotated[
        Path | None, typer.Option(help="Lock files of `mvstack lock --to`; else settings.")
    ] = None,
    untrusted: Annotated[
        bool, typer.Option("--untrusted", help="No job with a key, whatever GitLab says.")
    ] = False,
    cores: Annotated[int, typer.Option(min=1, help="Cores of a runner, for estimates.")] = 8,
    as_json: Json = False,
) -> None:
    """Say what a change builds, checks and deploys, and write the pipelines that do it."""
    from mvstack.ci import sites
    from mvstack.ci.generate import generate as make
    from mvstack.ci.pipeline import Context
    from mvstack.ci.trust import base_of, trust_of
    from mvstack.ci.words import as_data, explained

    if not settings.is_file():
        raise InvalidInput(
            Problem(
                "there are no settings of a pipeline",
                str(settings),
                todo="write mvstack-ci.yaml (docs/ci.md shows one), or name it: --settings",
            )
        )
    project, file = sites.project_of(settings)
    found = trust_of(os.environ)
    context = Context(
        trusted=found.trusted and not untrusted,
        url=os.environ.get("MVSTACK_URL", ""),
        commit=os.environ.get("MVSTACK_COMMIT", ""),
        folder=to.name,
        tag=os.environ.get("MVSTACK_TAG", ""),
    )
    base = base_of(os.environ) if change is None else change
    sites.same_pin(project, context.commit)
    lost = change is None and bool(base) and not sites.has_commit(project, base)
    base = "" if lost else base
    made = make(
        project,
        file,
        base,
        context,
        schedule=schedule,
        locks=locks,
        everything=everything,
        cores=cores,
    )
    sites.write({**made.pipelines.files, **made.pipelines.locks}, to)
    why = "--untrusted" if found.trusted and untrusted else found.why
    if as_json:
        data = as_data(made.against, made.todos, made.pipelines.jobs)
        data |= {
            "trusted": context.trusted,
            "why": why,
            "files": sorted(made.pipelines.files),
            "unserved": made.unserved,
            "notes": made.notes,
        }
        typer.echo(json.dumps(data, indent=2))
        return
    if lost:
        typer.echo(
            "note: the commit before is not there any more (a force push?): all counts as new"
        )
    for note in made.notes:
        typer.echo(f"note: {note}")
    if schedule:
        typer.echo(f"{made.against}: checks of what is deployed")
    else:
        typer.echo(explained(made.against, made.todos, made.pipelines.jobs))
    if made.unserved:
        typer.echo(f"no runner of this project serves {', '.join(made.unserved)}")
    typer.echo(
        f"signing and deploying: {'possible' if context.trusted else 'no such job'}, because {why}"
    )


System = Annotated[
    str, typer.Argument(metavar="SYSTEM/PARTITION|FILE/PARTITION", help="The partition.")
]
Take = Annotated[
    list[Path] | None,
    typer.Option("--take", help="Folder with what other jobs handed over; several."),
]
Trust = Annotated[
    list[Path] | None,
    typer.Option("--trust", help="A site's public key (`cache keys export`); several."),
]
Caches = Annotated[
    list[str] | None, typer.Option("--cache", help="A binary cache; also MVSTACK_CACHES.")
]


def _progress(as_json: bool) -> Progress:
    from mvstack.support.progress import Progress

    return Progress(mode="quiet" if as_json else "auto")


def _told(rows: list[dict[str, Any]], as_json: bool) -> None:
    """The rows as JSON, or how many packages came from where."""
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["result"]] = counts.get(row["result"], 0) + 1
    said = ", ".join(f"{count} {result}" for result, count in counts.items())
    typer.echo(said or "nothing was to be done: all is there")


@app.command(
    epilog="Example: mvstack ci build azure-hbv4/hpc --node GCC-12.2.0.eb --hand handover/gcc"
)
def build(
    system: System,
    node: Annotated[
        list[str], typer.Option("--node", help="What to build: easyconfig or hash; several.")
    ],
    hand: Annotated[Path, typer.Option("--hand", help="Where it is handed on: a new cache.")],
    take: Take = None,
    trust: Trust = None,
    cache: Caches = None,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Compile so.")] = None,
    logs: Annotated[Path | None, typer.Option(help="Folder for junit.xml and logs.")] = None,
    root: Annotated[
        Path | None, typer.Option("--root", help="Build below it and keep it; else a temporary.")
    ] = None,
    tree_length: Annotated[
        int, typer.Option(min=40, max=96, help="Characters of the path to build in.")
    ] = 96,
    as_json: Json = False,
) -> None:
    """Build some packages of a partition over what was handed over, and hand them on."""
    from mvstack.ci.steps import build_job

    rows = build_job(
        system, node, take or [], hand, trust or [], cache or [], jobs, logs, root, tree_length,
        _progress(as_json),
    )  # fmt: skip
    _told(rows, as_json)


@app.command(
    epilog="Example: mvstack ci stage azure-hbv4/hpc --take handover --root /shared/staging/1"
)
def stage(
    system: System,
    root: Annotated[Path, typer.Option("--root", help="A folder that the nodes see.")],
    take: Take = None,
    trust: Trust = None,
    cache: Caches = None,
    as_json: Json = False,
) -> None:
    """Put a whole partition together from handovers and caches; nothing is built."""
    from mvstack.ci.steps import stage_job

    rows = stage_job(system, take or [], trust or [], cache or [], root, _progress(as_json))
    _told(rows, as_json)


@app.command(
    epilog="Example: mvstack ci validate azure-hbv4/hpc --root /shared/staging/1 --tag smoke "
    "--to validate"
)
def validate(
    system: System,
    root: Annotated[Path, typer.Option("--root", help="Where the partition is installed.")],
    to: Annotated[Path, typer.Option("--to", help="Folder for junit.xml, metrics.txt, results.")],
    tag: Annotated[list[str] | None, typer.Option(help="Only checks with this tag.")] = None,
    work: Annotated[
        Path | None, typer.Option(help="Where checks run, seen by the nodes; else in the root.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run the checks by the site's scheduler, and write reports that GitLab shows."""
    from mvstack.ci.steps import validate_job
    from mvstack.install.stages import failed_checks

    results = validate_job(system, root, tag or [], work, to, _progress(as_json))
    if as_json:
        typer.echo(json.dumps(results, indent=2))
    else:
        count = sum(case["result"] == "pass" for case in results["cases"])
        typer.echo(
            f"{count} of {len(results['cases'])} checks passed, "
            f"{len(results['skipped'])} skipped, in {results['seconds']:.0f} s"
        )
    if failed := failed_checks(results):
        raise failed


@app.command(epilog="Example: mvstack ci sign azure-hbv4/hpc --take handover --to /shared/cache")
def sign(
    system: System,
    to: Annotated[str, typer.Option("--to", help="The site's cache: a folder, or file://…")],
    take: Take = None,
    key: Annotated[str, typer.Option(help="Fingerprint, when several keys could sign.")] = "",
    as_json: Json = False,
) -> None:
    """Sign what was handed over with the site's key (MVSTACK_SIGNING_KEY), into its cache."""
    from mvstack.ci.steps import sign_job

    own, rows = sign_job(system, take or [], to, key, _progress(as_json))
    _told(rows, as_json)
    if not as_json:
        typer.echo(f"signed with {own.fingerprint}")


@app.command(
    epilog="Example: mvstack ci deploy azure-hbv4/hpc --root /apps/mvapich-stack "
    "--cache /shared/cache"
)
def deploy(
    system: System,
    root: Annotated[Path, typer.Option("--root", help="The shared tree.")],
    cache: Annotated[list[str], typer.Option("--cache", help="The site's signed cache.")],
    trust: Trust = None,
    results: Annotated[
        Path | None, typer.Option(help="What `ci validate --to` wrote, kept with the tree.")
    ] = None,
    state: Annotated[
        str, typer.Option(help="What this deploys, noted in the first cache when it is done.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Install a partition into the shared tree, from signed packages alone."""
    from mvstack.ci.steps import deploy_job

    rows = deploy_job(system, root, cache, trust or [], results, state, _progress(as_json))
    _told(rows, as_json)


@app.command(epilog="Example: mvstack ci check --settings mvstack-ci.yaml")
def check(
    settings: Annotated[Path, typer.Option(help="The settings file, in the project.")] = Path(
        SETTINGS
    ),
    as_json: Json = False,
) -> None:
    """Check the settings and all that they name: systems, keys; every error at once."""
    from mvstack.ci.checking import check_project

    checked = check_project(settings)
    if as_json:
        typer.echo(json.dumps({"checked": checked}, indent=2))
    else:
        typer.echo(f"{settings}: right; it serves {', '.join(checked)}")
