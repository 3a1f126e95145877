"""Make a bundle: gather its parts, say what it holds, and write the hashes last."""

from __future__ import annotations

import json
import platform
import shutil
import sys
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mvstack.builders.base import builder_of
from mvstack.bundle import checkout, wheels
from mvstack.cache import gpg
from mvstack.cache.place import place
from mvstack.cache.use import site_caches
from mvstack.install import stages
from mvstack.install.flow import Request
from mvstack.model.prerequisites import family_of
from mvstack.model.system import System
from mvstack.plan.make import split_name
from mvstack.plan.types import Extent, Plan
from mvstack.sources.accepted import all_accepted
from mvstack.sources.files import sha256_of
from mvstack.support.errors import InvalidInput, Missing
from mvstack.support.files import write_atomically
from mvstack.support.progress import Progress

FORMAT = 1
SUMS = "SHA256SUMS"


def make(asked: Request, target: Path, binaries: bool, progress: Progress) -> dict[str, Any]:
    """Write the bundle of what is ``asked`` to ``target``.

    What an interrupted run gathered is used again. Returns the manifest. Raises SourceError,
    Refused, InvalidInput when ``target`` holds something else.
    """
    system, partitions = stages.load(asked.name)
    caches = asked.caches or site_caches()
    _ours(target)
    where, extent = (asked.release, asked.root), Extent(asked.profile)
    plans = [stages.plan_for(system, one, *where, caches, extent) for one in partitions]
    target.mkdir(parents=True, exist_ok=True)
    (target / SUMS).unlink(missing_ok=True)  # not before all that was typed is known to be right
    write_atomically(target / "manifest.json", "{}\n")  # marks the folder as ours; complete last
    with progress.step("bundle", "this checkout"):
        own = checkout.archive(target / "repository.tar.gz")
    builder = builder_of(system.builder)
    names = (*wheels.OWN, *builder.requirements)
    with progress.step("bundle", "Python packages") as step:
        count = wheels.gather(target / "wheels", names, step.note)
    found: dict[str, Any] = {"sources": [], "signed_by": [], "longest_root": 0}
    fetcher = stages.fetcher_for(plans[0].root, progress)
    cache = place(str(target / "cache"))
    with progress.step("bundle", f"the builder, {system.builder}") as step:
        builder.tools(plans[0], target, step.note)
    for plan in plans:
        if binaries:
            signed_by, found["longest_root"] = builder.binaries(plan, caches, cache, progress)
            found["signed_by"] += signed_by
        else:
            found["sources"] += builder.sources(plan, fetcher, target / "sources", progress)
    file = _system_file(asked.name, target)
    about = _about(system, plans, own, found, binaries, file)
    return _finished(target, about, plans, count, progress)


def _ours(target: Path) -> None:
    """Refuse to write into a folder that holds something else."""
    if target.exists() and not target.is_dir():
        raise InvalidInput("a bundle is a folder; this is a file", str(target))
    if target.is_dir() and any(target.iterdir()) and not (target / "manifest.json").is_file():
        raise InvalidInput(
            "this folder holds something, and no bundle",
            str(target),
            todo="name a new folder, or an earlier bundle",
            outcome="Nothing was written.",
        )


def _system_file(name: str, target: Path) -> bool:
    """Take the system's file along when it is none of this repository's."""
    path = Path(split_name(name)[0])
    if path.suffix not in (".yaml", ".yml"):
        return False
    shutil.copyfile(path, target / "system.yaml")
    return True


def _about(
    system: System,
    plans: list[Plan],
    own: checkout.Checkout,
    found: dict[str, Any],
    binaries: bool,
    system_file: bool,
) -> dict[str, Any]:
    used = {(build.software.lower(), build.version) for plan in plans for build in plan.mpi}
    used |= {(one.name.lower(), one.version) for plan in plans for one in plan.packages}
    accepted = [one for one in all_accepted() if (one.software.lower(), one.version) in used]
    return {
        "format": FORMAT,
        "system": system.name,
        "system_file": system_file,
        "partitions": [f"{plan.system}/{plan.partition}" for plan in plans],
        "release": plans[0].release,
        "builder": plans[0].builder,
        "os": sorted({plan.os for plan in plans}),
        "targets": sorted({plan.target for plan in plans}),
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "machine": platform.machine(),
        "commit": own.commit,
        "uncommitted": own.changed,
        "sources": None if binaries else sorted(set(found["sources"])),
        "binaries": {
            "signed_by": sorted(set(found["signed_by"])),
            "longest_root": found["longest_root"],
        }
        if binaries
        else None,
        "accepted": [one.model_dump() for one in accepted],
    }


def _finished(
    target: Path,
    about: dict[str, Any],
    plans: list[Plan],
    wheel_count: int,
    progress: Progress,
) -> dict[str, Any]:
    """Write what people and programs read, then the hashes of all files, signed if we can."""
    own = [key for key in gpg.trusted() if key.own] if shutil.which("gpg") else []
    try:
        family = family_of(plans[0].os)
        name, packages = ", ".join(family.like), [one.model_dump() for one in family.packages]
    except Missing:
        name, packages = plans[0].os, []
    commit = about["commit"][:12] or "no commit"
    changed = f" with {about['uncommitted']} changed files" if about["uncommitted"] else ""
    binaries = about["binaries"] is not None
    values = {
        "generated": f"Generated by `mvstack bundle` from {commit}{changed}.",
        "release": about["release"],
        "system": about["system"],
        "system_file": about["system_file"],
        "names": about["partitions"],
        "binaries": binaries,
        "longest": about["binaries"]["longest_root"] if binaries else 0,
        "spack": (target / "spack").is_dir(),
        "signed": len(own) == 1,
        "accepted": about["accepted"],
        "family": name,
        "packages": packages,
        "python": about["python"],
        "machine": f"{', '.join(about['os'])} on {about['machine']}, processor "
        f"{' or '.join(about['targets'])}",
        "contents": _contents(target, about, wheel_count),
    }
    write_atomically(target / "README.md", _template("README.md", values))
    write_atomically(target / "install", _template("install", values))
    (target / "install").chmod(0o755)
    write_atomically(target / "manifest.json", json.dumps(about, indent=1) + "\n")
    with progress.step("bundle", "hashes"):
        lines = [
            f"{sha256_of(path)}  {path.relative_to(target)}\n"
            for path in sorted(target.rglob("*"))
            if path.is_file() and not path.is_symlink() and path.name not in (SUMS, f"{SUMS}.asc")
            if path.name != ".lock"
        ]
        if len(own) == 1:
            signed = gpg.sign("".join(lines), own[0].fingerprint)
            write_atomically(target / f"{SUMS}.asc", signed)
        write_atomically(target / SUMS, "".join(lines))
    return about


def _contents(target: Path, about: dict[str, Any], wheel_count: int) -> list[dict[str, str]]:
    rows = [
        {"what": "this repository", "where": "`repository.tar.gz`"},
        {
            "what": "Python packages that it and EasyBuild need",
            "where": f"`wheels/`, {wheel_count}",
        },
    ]
    if (target / "spack").is_dir():
        rows.append({"what": "Spack and its packages", "where": "`spack/`"})
    if about["sources"] is not None:
        rows.append({"what": "sources", "where": f"`sources/`, {len(about['sources'])}"})
    if about["binaries"] is not None:
        count = sum(1 for _ in target.glob("cache/easybuild/*/??/*.json.asc"))
        count += sum(1 for _ in target.glob("cache/spack/v3/manifests/spec/*/*.json"))
        rows.append({"what": "binaries, signed", "where": f"`cache/`, {count} packages"})
    if about["system_file"]:
        rows.append({"what": "the system's file", "where": "`system.yaml`"})
    return rows


def _template(name: str, values: dict[str, Any]) -> str:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(f"{name}.j2").render(values)
