"""What Spack needs to install a plan: itself, its packages, and sources or binaries."""

import shutil
import tempfile
from pathlib import Path

from mvstack.builders.base import Note, carried
from mvstack.builders.spack.cache import push
from mvstack.builders.spack.clone import clones
from mvstack.builders.spack.environments import solved
from mvstack.builders.spack.sources import fetch
from mvstack.cache import gpg
from mvstack.cache.place import Place
from mvstack.cache.use import Caches
from mvstack.model.spack import spack_pins
from mvstack.plan.types import Plan
from mvstack.sources.fetch import Fetched, Fetcher
from mvstack.sources.spec import SourceSpec
from mvstack.sources.store import Store
from mvstack.support import git
from mvstack.support.errors import Refused
from mvstack.support.progress import Progress
from mvstack.tree.records import Records, kept_plan

# A bundle may belong to somebody else than who installs from it; its commits are proved.
GITCONFIG = "[safe]\n\tdirectory = *\n"


def repositories(plan: Plan, target: Path, note: Note) -> None:
    """Spack and its packages at their pins, as repositories to clone from (one commit each)."""
    pins = spack_pins()
    cloned = clones(Path(plan.root), pins, note)
    target = target / "spack"
    target.mkdir(parents=True, exist_ok=True)
    (target / "gitconfig").write_text(GITCONFIG)
    for name, pin in pins.repositories.items():
        place = target / f"{name}.git"
        note(f"{name} {pin.tag}")
        if (place / "HEAD").is_file() and git.commit_of(place, pin.tag) == pin.commit:
            continue
        shutil.rmtree(place, ignore_errors=True)
        incoming = target / ".incoming.git"
        shutil.rmtree(incoming, ignore_errors=True)
        words = ("clone", "--quiet", "--bare", "--depth=1", "--branch", pin.tag)
        git.answer(target, *words, (cloned.home / name).as_uri(), str(incoming))
        incoming.rename(place)


def sources(plan: Plan, fetcher: Fetcher, target: Path, progress: Progress) -> list[str]:
    """Bring every source of the concretized plan into the mirror ``target``; their file names.

    Concretizes first. Raises what that and fetching raise, and Refused for a source without a
    hash: no mirror can hold it.
    """
    mirror, files = Store(target), []

    def bring(spec: SourceSpec) -> Fetched:
        files.append(spec.filename)
        return carried(fetcher, mirror, spec)

    with tempfile.TemporaryDirectory(prefix="mvstack-") as name:
        place = Path(name)
        for one, answer in solved(plan, Path(plan.root), place, progress):
            asked = one.sources([node.hash for node in answer.built()])
            if asked["others"]:
                raise Refused(
                    "these sources have no hash, so no mirror can hold them",
                    f"{plan.system}/{plan.partition}",
                    found=", ".join(asked["others"]),
                    because="their recipes clone a repository",
                    todo="mvstack bundle --binaries, from a machine where it is installed",
                    outcome="The bundle is not complete.",
                )
            fetch(asked, bring, Records(place), progress)
    return files


def binaries(
    plan: Plan, caches: Caches, target: Place, progress: Progress
) -> tuple[list[str], int]:
    """Push what is installed here into the cache ``target``; see base.Builder."""
    try:
        data = kept_plan(Path(plan.tree))
    except (OSError, ValueError):
        raise Refused(
            "nothing is installed here that could be taken along",
            plan.tree,
            todo=f"mvstack install {plan.system}/{plan.partition} here first",
            outcome="The bundle is not complete.",
        ) from None
    own = gpg.own_key()
    push(data, target, own, progress)
    return [own.fingerprint], len(plan.root)
