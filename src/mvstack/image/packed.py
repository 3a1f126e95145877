"""A release packed where it was installed, for an image that is built on another machine.

A release is compiled and linked for one operating system; Packer runs on any. The folder holds
release.tar.zst and, as an image's own, SHA256SUMS with its signature.
"""

import json
from pathlib import Path
from typing import Any

from mvstack.image import kit, sign
from mvstack.plan.types import Plan
from mvstack.support.errors import Missing, Problem, Refused
from mvstack.support.processes import run
from mvstack.support.progress import Progress

ARCHIVE = "release.tar.zst"
_SAME = ("system", "partition", "release", "os", "target", "tree")


def pack(plan: Plan, to: Path, key: str, progress: Progress) -> dict[str, str]:
    """Pack and sign the installed release of ``plan`` into the new folder ``to``.

    Raises Missing when it is not installed, Refused when ``to`` is there or nobody can sign.
    """
    where = f"{plan.system}/{plan.partition}"
    tree = Path(plan.tree)
    if not (tree / "records" / "plan.json").is_file():
        todo = f"mvstack install {where}   (on a machine of {plan.os})"
        raise Missing("the release is not installed here", str(tree), todo=todo)
    if to.exists():
        raise Refused("this folder is there already", str(to), todo="name a new one")
    to.mkdir(parents=True)
    with progress.step("pack", f"{where}, release {plan.release}") as step:
        digest = kit.release_archive(tree, to / ARCHIVE, step.note, to / "log")
        (to / "log").unlink(missing_ok=True)
        signer = sign.sign(to, key).signer
    return {"folder": str(to), "sha256": digest, "signer": signer}


def archive_of(folder: Path, plan: Plan) -> Path:
    """The archive in ``folder``, when it is signed by a trusted key and is of ``plan``.

    Raises Refused for another release, and what :func:`sign.verify` raises.
    """
    sign.verify(folder)
    archive = folder / ARCHIVE
    done = run(["tar", "--zstd", "-xO", "--file", archive, "records/plan.json"])
    try:
        found: dict[str, Any] = json.loads(done.text)
    except ValueError:
        raise Refused(
            "this is no packed release", str(archive), found=done.errors.strip()[:300]
        ) from None
    wanted = plan.as_dict()
    other = [
        Problem(f"the packed release is of another {name}", str(archive), found=there, allowed=here)
        for name in _SAME
        if (there := str(found.get(name))) != (here := str(wanted[name]))
    ]
    ours, theirs = ([str(one["module"]) for one in which["mpi"]] for which in (wanted, found))
    if ours != theirs:
        other.append(
            Problem(
                "the packed release has other MPI builds",
                str(archive),
                found=", ".join(theirs),
                allowed=", ".join(ours),
            )
        )
    if other:
        raise Refused(*other, outcome="Nothing was built.")
    return archive
