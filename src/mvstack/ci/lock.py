"""Spack's lock on its way through a pipeline: from the project to every job, and signed.

Between jobs it is a folder ``lock`` in what is handed over: the one job that makes a whole
partition solved for it, or the job `lock` took it from the job that planned. In the site's cache it
is one signed file, filed under what it was solved for, so that `deploy` installs by the lock that
was validated:

    locks/<system>-<partition>/<inputs>/lock.json.asc
"""

import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from mvstack.builders.base import builder_of
from mvstack.builders.spack import handed
from mvstack.builders.spack.environments import solved
from mvstack.cache import gpg
from mvstack.cache.place import NotBelieved, Place, Unreachable, place
from mvstack.ci.handover import AGAIN, shared
from mvstack.diff.sides import Side, read_side
from mvstack.model.meaning import of_texts
from mvstack.model.spack import spack_pins
from mvstack.plan.types import Plan
from mvstack.render.partition import render
from mvstack.render.spack import compiler_of
from mvstack.support import hashes
from mvstack.support.errors import InvalidInput, Missing, Refused
from mvstack.support.files import write_atomically
from mvstack.support.progress import Progress

_FILES = TypeAdapter(dict[str, str])
FOLDER = "lock"
"""Of a lock in a handover."""


def spack_plans(side: Side) -> tuple[list[str], dict[str, Plan]]:
    """The partitions that ``side`` rendered, and the plans of those whose builder is Spack."""
    plans = {name: one.plan for name, one in read_side(side).items()}
    return [*plans], {name: one for name, one in plans.items() if builder_of(one.builder).solves}


def of_compiler(plan: Plan, folder: str) -> Plan:
    """The plan by which the compiler of ``plan`` is installed below ``folder``.

    Its place tells all that it is made from, so that a changed one goes beside it, and partitions
    of one operating system and processor family share it.
    """
    anywhere = render(replace(plan, root="/root", tree="/root/tree"))
    asked = {"spack.yaml": anywhere["spack/compiler/spack.yaml"]}
    made = hashes.of(of_texts(asked), [pin.commit for pin in spack_pins().repositories.values()])
    name = f"{plan.compiler['name']}-{plan.compiler['version']}-{made[:10]}"
    return replace(plan, root=folder, tree=f"{folder}/{name}")


def over_compilers(plan: Plan, folder: str | None) -> Plan:
    """``plan`` over the compiler that Spack builds below ``folder``, whatever tree it is in.

    The compiler's path is part of the hash of every package. Raises InvalidInput without a folder.
    """
    if not (builder_of(plan.builder).solves and compiler_of(plan)["built"]):
        return plan
    if not folder:
        raise InvalidInput(
            "Spack builds the compiler of this partition, and no folder for compilers is named",
            f"{plan.system}/{plan.partition}",
            found=f"compiler: {{origin: {plan.compiler['origin']}}}",
            because="the compiler's path is part of the hash of every package, and a pipeline "
            "builds, stages and deploys in three different trees",
            todo="name a folder that all runners and users see by the same path: `compilers: "
            "/shared/compilers` beside `staging:` in the settings (--compilers of commands)",
        )
    prefix = compiler_of(of_compiler(plan, folder))["prefix"]
    return replace(plan, compiler={**plan.compiler, "origin": "external", "prefix": prefix})


def refuse_lost_compiler(plan: Plan, folder: str | None) -> None:
    """Raise Missing when the compiler of a plan of :func:`over_compilers` is not there."""
    prefix = str(plan.compiler.get("prefix") or "")
    if folder and prefix.startswith(f"{folder}/") and not Path(prefix).exists():
        raise Missing(
            "the compiler that Spack builds for this partition is not there",
            prefix,
            because="only pipelines of protected branches build it, in their job `compiler`",
            todo="run one for the branch that these jobs are merged into; or see that this runner "
            "sees the folder",
        )


def usable(folder: Path | None, plans: Mapping[str, Plan], notes: list[str]) -> dict[str, Path]:
    """The folders below ``folder`` with locks of ``plans``, by partition.

    They are as `mvstack lock --to` writes them: <system>/<partition>/spack.lock and its record. One
    that was solved for another plan is left out, and a note says so.
    """
    if folder is None:
        return {}
    if not folder.is_dir():
        raise InvalidInput(
            "there is no such folder of lock files",
            str(folder),
            todo="mvstack lock … --to DIR writes one",
        )
    found: dict[str, Path] = {}
    for name, plan in plans.items():
        if not (folder / name / handed.LOCK).is_file():
            continue
        if handed.is_of(folder / name, plan):
            found[name] = folder / name
        else:
            notes.append(
                f"the lock file of {name} is not used, because it was solved for another plan: "
                f"run mvstack lock … --to {folder.name}"
            )
    return found


def solved_for(plan: Plan, caches: Sequence[str], progress: Progress) -> Path:
    """The folder with a lock of ``plan``: a cache's signed one, else solved for now and kept.

    So that each package gets a job of its own where the project has no lock files. Raises what
    solving raises.
    """
    folder = shared() / "locks" / handed.inputs(plan)
    if not handed.is_of(folder, plan) and not signed(plan, caches, folder):
        with tempfile.TemporaryDirectory(prefix="mvstack-lock-") as place:
            for one, _ in solved(plan, shared(), Path(place), progress):
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(one.file, folder / handed.LOCK)
        handed.note(plan, folder)
    return folder


def taken(folders: Iterable[Path]) -> Path | None:
    """The spack.lock in handovers below ``folders``; None when there is none.

    Raises Refused when jobs handed over locks that differ, or a link: it would name a file of the
    job that reads it, such as its key.
    """
    found: dict[str, Path] = {}
    for file in [one for top in folders for one in sorted(top.rglob(f"{FOLDER}/{handed.LOCK}"))]:
        folder = file.parent
        if links := [path for path in (folder, *folder.rglob("*")) if path.is_symlink()]:
            where = ", ".join(map(str, links))
            raise Refused("a lock was handed over as a link", where, todo=AGAIN)
        found.setdefault(json.dumps(handed.texts(folder)), file)
    if len(found) > 1:
        raise Refused(
            "several locks were handed over, and they differ",
            found=", ".join(map(str, found.values())),
            todo="run the whole pipeline again: all of its jobs install by one lock",
        )
    return next(iter(found.values()), None)


def put(plan: Plan, lock: Path, to: str, key: gpg.Key, progress: Progress) -> None:
    """Put ``lock`` into the site's cache ``to``, signed with ``key``, in place of an earlier one.

    Call it when all that the lock names is there. Raises Refused for a lock of another plan.
    """
    handed.check(lock, plan)
    target, texts = place(to), handed.texts(lock.parent)
    what = f"the lock of {plan.system}/{plan.partition}"
    with contextlib.suppress(NotBelieved, Unreachable):
        if believed(target, plan) == texts:
            progress.skip("sign", what, "already there")
            return
    with progress.step("sign", what):
        signed = gpg.sign(json.dumps(texts, indent=1) + "\n", key.fingerprint)
        write_atomically(target.writable() / _name(plan), signed)


def signed(plan: Plan, caches: Sequence[str], to: Path) -> Path | None:
    """The spack.lock of ``plan`` from the first of ``caches`` that has one, written below ``to``.

    It must be signed by a key that is trusted here (:func:`mvstack.ci.handover.keyring`). None when
    no cache that can be asked has it. Raises Refused for one that must not be used.
    """
    for name in caches:
        try:
            found = believed(place(name), plan)
        except Unreachable:
            continue
        except NotBelieved as error:
            raise Refused(
                f"the lock of {plan.system}/{plan.partition} in this cache is refused: {error}",
                f"{name}: {_name(plan)}",
                todo=error.todo or "run its pipeline again: the job `sign` puts it there",
                outcome="Nothing was installed.",
            ) from None
        if found:
            handed.write(found, to)
            return to / handed.LOCK
    return None


def _name(plan: Plan) -> str:
    """The lock's file, from the cache."""
    return f"locks/{plan.system}-{plan.partition}/{handed.inputs(plan)}/lock.json.asc"


def believed(source: Place, plan: Plan) -> dict[str, str]:
    """The files of the signed lock of ``plan`` in a cache; {} where it has none.

    A cache that has it has all that it names (:func:`put`). Raises NotBelieved, Unreachable.
    """
    signed = source.read(_name(plan))
    if signed is None:
        return {}
    try:
        return _FILES.validate_json(gpg.verified(signed)[0])
    except ValidationError:
        raise NotBelieved("it is signed, and holds no lock") from None
