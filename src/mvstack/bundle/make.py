"""Make a bundle: gather its parts, say what it holds, and write the hashes last.

Every bundle has this very checkout as one archive, the Python packages, and the sources of Lmod.
"""

import json
import os
import platform
import shutil
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mvstack.builders.base import builder_of, carried
from mvstack.builders.following import heard
from mvstack.cache import gpg
from mvstack.cache.pack import packed
from mvstack.cache.place import place
from mvstack.cache.use import site_caches
from mvstack.install import lmod, stages
from mvstack.install.flow import Request
from mvstack.model.prerequisites import family_of
from mvstack.plan.make import split_name
from mvstack.plan.types import Extent, Plan
from mvstack.render.templates import template
from mvstack.sources.accepted import all_accepted
from mvstack.sources.store import Store
from mvstack.support.errors import InvalidInput, Missing, Refused, SourceError
from mvstack.support.files import sha256_of, write_atomically
from mvstack.support.git import told
from mvstack.support.home import DATA, checkout
from mvstack.support.progress import Progress

FORMAT = 1
SUMS = "SHA256SUMS"
# What `./mvstack` sets itself up with.
OWN = ("build.txt", "runtime.txt")
# What a checkout without git holds beside its own files.
_MADE = {".venv", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis"}


def make(asked: Request, target: Path, binaries: bool, progress: Progress) -> dict[str, Any]:
    """Write the bundle of what is ``asked`` to ``target``.

    What an interrupted run gathered is used again. Returns the manifest. Raises SourceError,
    Refused, InvalidInput when ``target`` holds something else.
    """
    system, partitions = stages.load(asked.name, asked.release)
    caches = asked.caches or site_caches()
    _ours(target)
    where, extent = (asked.release, asked.root), Extent(asked.profile)
    plans = [stages.plan_for(system, one, *where, caches, extent) for one in partitions]
    target.mkdir(parents=True, exist_ok=True)
    (target / SUMS).unlink(missing_ok=True)  # not before all that was typed is known to be right
    write_atomically(target / "manifest.json", "{}\n")  # marks the folder as ours; complete last
    with progress.step("bundle", "this checkout"):
        own = archive(target / "repository.tar.gz")
    builder = builder_of(system.builder)
    with progress.step("bundle", "Python packages") as step:
        gather(target / "wheels", (*OWN, *builder.requirements), step.note)
    with progress.step("bundle", f"the builder, {system.builder}") as step:
        builder.tools(plans[0], target, step.note)
    about = _about(plans, *own)
    fetcher, mirror = stages.fetcher_for(plans[0].root), target / "sources"
    for spec in lmod.specs():  # a machine without Lmod builds one
        carried(fetcher, Store(mirror), spec)
    if binaries:
        cache = place(str(target / "cache"))
        found = [builder.binaries(plan, caches, cache, progress) for plan in plans]
        signed_by = sorted({signer for signers, _ in found for signer in signers})
        about["binaries"] = {"signed_by": signed_by, "longest_root": found[-1][1]}
    else:
        brought = [builder.sources(plan, fetcher, mirror, progress) for plan in plans]
        about["sources"] = sorted({name for names in brought for name in names})
    if (file := Path(split_name(asked.name)[0])).suffix in (".yaml", ".yml"):
        shutil.copyfile(file, target / "system.yaml")
        about["system_file"] = True  # none of this repository's
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
    kinds = ("easybuild/*/??/*.json.asc", "spack/v3/manifests/spec/*/*.json")
    commit = about["commit"][:12] or "no commit"
    changed = f" with {about['uncommitted']} changed files" if about["uncommitted"] else ""
    values = {
        **about,
        "generated": f"Generated by `mvstack bundle` from {commit}{changed}.",
        "spack": (target / "spack").is_dir(),
        "signed": len(own) == 1,
        "family": family,
        "packages": packages,
        "wheels": len(list((target / "wheels").iterdir())),
        "entries": sum(len(list((target / "cache").glob(kind))) for kind in kinds),
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


def archive(target: Path) -> tuple[str, int]:
    """Write this checkout into ``target``, the same bytes for the same files, but not the bundle.

    Which commit it is ("" without git), and how many files differ from it. Not `git archive`: what
    is planned here is planned with the files as they are, committed or not.
    """
    top, bundle = checkout("mvstack bundle"), target.parent.resolve()
    files = sorted(name for name in _files(top) if not (top / name).is_relative_to(bundle))
    if not files:
        raise Refused("this checkout has no files", str(top))
    with packed(target) as tar:
        for name in files:
            tar.add(top / name, name, recursive=False, filter=_plain)
    but = [f":(exclude){bundle.relative_to(top)}"] if bundle.is_relative_to(top) else []
    changed = told(top, "status", "--porcelain", "--", ".", *but).splitlines()
    return told(top, "rev-parse", "HEAD").strip(), len(changed)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """An entry as it would be of anybody's checkout; None for what is no file."""
    entry.mode = 0o755 if entry.mode & 0o100 else 0o644
    entry.mtime = entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry if entry.isfile() or entry.issym() or entry.islnk() else None


def _files(top: Path) -> Iterator[str]:
    listed = told(top, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if listed:
        yield from (name for name in listed.split("\0") if name and os.path.lexists(top / name))
        return
    for folder, folders, names in os.walk(top):
        folders[:] = [name for name in folders if name not in _MADE]
        yield from (str((Path(folder) / name).relative_to(top)) for name in names)


def gather(target: Path, names: tuple[str, ...], note: Callable[[str], None]) -> None:
    """Download what requirements/``names`` pin for this Python and machine. Raises SourceError."""
    target.mkdir(parents=True, exist_ok=True)
    kept = {key: text for key, text in os.environ.items() if key != "PYTHONPATH"}
    for name in names:
        file = DATA / "requirements" / name
        command = [
            *(sys.executable, "-m", "pip", "download", "--no-input", "--progress-bar", "off"),
            *("--disable-pip-version-check", "--require-hashes", "--no-deps"),
            *("--no-build-isolation", "--dest", str(target), "-r", str(file)),
        ]
        if name not in OWN:
            command += ["--only-binary", ":all:"]
        status, said = heard(command, kept, note)
        if status:
            wrong = [one for one in said if "error" in one.lower() or "No matching" in one]
            raise SourceError(
                "the Python packages that are pinned cannot be downloaded",
                str(file),
                found=" | ".join(wrong[-4:] or said[-3:]),
                todo="the same command again once pip can reach its index (PIP_INDEX_URL, "
                "PIP_FIND_LINKS and PIP_CERT are honoured)",
            )
