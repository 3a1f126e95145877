"""Make a bundle: gather its parts, say what it holds, and write the hashes last."""

import json
import platform
import shutil
import sys
from pathlib import Path
from typing import Any

from mvstack.builders.base import builder_of
from mvstack.bundle import parts
from mvstack.cache import gpg
from mvstack.cache.place import place
from mvstack.cache.use import site_caches
from mvstack.install import stages
from mvstack.install.flow import Request
from mvstack.model.prerequisites import family_of
from mvstack.plan.make import split_name
from mvstack.plan.types import Extent, Plan
from mvstack.render.templates import template
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
        own = parts.archive(target / "repository.tar.gz")
    builder = builder_of(system.builder)
    with progress.step("bundle", "Python packages") as step:
        parts.gather(target / "wheels", (*parts.OWN, *builder.requirements), step.note)
    with progress.step("bundle", f"the builder, {system.builder}") as step:
        builder.tools(plans[0], target, step.note)
    about = _about(plans, *own)
    if binaries:
        cache = place(str(target / "cache"))
        found = [builder.binaries(plan, caches, cache, progress) for plan in plans]
        signed_by = sorted({signer for signers, _ in found for signer in signers})
        about["binaries"] = {"signed_by": signed_by, "longest_root": found[-1][1]}
    else:
        fetcher, mirror = stages.fetcher_for(plans[0].root, progress), target / "sources"
        brought = [builder.sources(plan, fetcher, mirror, progress) for plan in plans]
        about["sources"] = sorted({name for names in brought for name in names})
    file = Path(split_name(asked.name)[0])
    if file.suffix in (".yaml", ".yml"):  # none of this repository's
        shutil.copyfile(file, target / "system.yaml")
        about["system_file"] = True
    _write(target, about, plans[0].os, progress)
    return about


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


def _about(plans: list[Plan], commit: str, changed: int) -> dict[str, Any]:
    """The manifest, without what is in the bundle."""
    used = {(build.software.lower(), build.version) for plan in plans for build in plan.mpi}
    used |= {(one.name.lower(), one.version) for plan in plans for one in plan.packages}
    accepted = [one for one in all_accepted() if (one.software.lower(), one.version) in used]
    return {
        "format": FORMAT,
        "system": plans[0].system,
        "system_file": False,
        "partitions": [f"{plan.system}/{plan.partition}" for plan in plans],
        "release": plans[0].release,
        "builder": plans[0].builder,
        "os": sorted({plan.os for plan in plans}),
        "targets": sorted({plan.target for plan in plans}),
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "machine": platform.machine(),
        "commit": commit,
        "uncommitted": changed,
        "sources": None,
        "binaries": None,
        "accepted": [one.model_dump() for one in accepted],
    }


def _write(target: Path, about: dict[str, Any], os_name: str, progress: Progress) -> None:
    """Write what people and programs read, then the hashes of all files, signed if we can."""
    own = [key for key in gpg.trusted() if key.own] if shutil.which("gpg") else []
    try:
        known = family_of(os_name)
        family, packages = ", ".join(known.like), known.packages
    except Missing:
        family, packages = os_name, []
    changed = f" with {about['uncommitted']} changed files" if about["uncommitted"] else ""
    made_from = (about["commit"][:12] or "no commit") + changed
    values = {
        **about,
        "generated": f"Generated by `mvstack bundle` from {made_from}.",
        "spack": (target / "spack").is_dir(),
        "signed": len(own) == 1,
        "family": family,
        "packages": packages,
        "wheels": len(list((target / "wheels").iterdir())),
        "entries": sum(
            1
            for kind in ("easybuild/*/??/*.json.asc", "spack/v3/manifests/spec/*/*.json")
            for _ in (target / "cache").glob(kind)
        ),
    }
    for name in ("README.md", "install"):
        write_atomically(target / name, template(f"bundle/{name}", **values))
    (target / "install").chmod(0o755)
    write_atomically(target / "manifest.json", json.dumps(about, indent=1) + "\n")
    with progress.step("bundle", "hashes"):
        lines = [
            f"{sha256_of(path)}  {path.relative_to(target)}\n"
            for path in sorted(target.rglob("*"))
            if path.is_file() and not path.is_symlink()
            if path.name not in (SUMS, f"{SUMS}.asc", ".lock")
        ]
        if len(own) == 1:
            signed = gpg.sign("".join(lines), own[0].fingerprint)
            write_atomically(target / f"{SUMS}.asc", signed)
        write_atomically(target / SUMS, "".join(lines))
