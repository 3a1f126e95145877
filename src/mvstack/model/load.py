"""Find and read the hand-written files: systems, releases, policy."""

import sys
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from mvstack.model.base import M, validated
from mvstack.model.policy import FILES, Policy
from mvstack.model.release import Addition, Release
from mvstack.model.system import System
from mvstack.model.yamlfile import YamlFile, parse_yaml, read_yaml
from mvstack.support.errors import InvalidInput, Problem, relative
from mvstack.support.files import not_text
from mvstack.support.home import home
from mvstack.support.words import listed, nearest


def system_names() -> list[str]:
    """The systems of the site and of this repository, sorted."""
    return [name.removesuffix(".yaml") for name in home().files("systems")]


def load_system(name_or_path: str) -> System:
    """The system of that name, or the one in a file (an argument with / or .yaml; `-`: stdin)."""
    if name_or_path == "-":
        try:
            return parse_system(sys.stdin.read(), Path("<standard input>"))
        except UnicodeDecodeError as error:
            raise not_text(error, Path("<standard input>")) from None
    if "/" in name_or_path or name_or_path.endswith((".yaml", ".yml")):
        return _model(System, Path(name_or_path))
    path = home().files("systems").get(f"{name_or_path}.yaml")
    if path is None:
        known = system_names()
        close = nearest(name_or_path, known)
        raise InvalidInput(
            f"there is no system {name_or_path}" + (f"; did you mean {close}?" if close else ""),
            allowed=listed(known),
            nearest=close,
            todo="name one of these, or give the path of a system file "
            "(`mvstack discover > mine.yaml` writes one)",
        )
    system = _model(System, path)
    if system.name != path.stem:
        file = read_yaml(path)
        raise InvalidInput(
            "name: a system's file is called after the system",
            file.where(("name",)),
            found=system.name,
            allowed=path.stem,
        )
    return system


def parse_system(text: str, path: Path) -> System:
    """A system from text, e.g. what `discover` found; ``path`` names it in errors."""
    return validated(System, parse_yaml(text, path))


R = TypeVar("R", Release, Addition)


def release_names() -> list[str]:
    """The releases of the site and of this repository, newest first."""
    return [Path(name).stem for name in reversed(home().files("releases", "**/*.yaml"))]


def load_release(name: str | None = None) -> Release:
    """The release of that name; without a name the newest."""
    known = release_names()
    name = name or known[0]
    if name not in known:
        raise InvalidInput(
            f"there is no release {name}",
            allowed=listed(known),
            nearest=nearest(name, known),
            todo="`mvstack list releases` shows them",
        )
    return _release(name, home().folders("releases"))


def _release(name: str, folders: list[Path]) -> Release:
    """The release as the first of ``folders`` that has it writes it."""
    while not (path := next(folders[0].rglob(f"{name}.yaml"), None)):
        folders = folders[1:]
    file = read_yaml(path)
    if not isinstance(file.data, dict) or "extends" not in file.data:
        return _placed(validated(Release, file), file)
    more = _placed(validated(Addition, file), file)
    # a site's 2026.11 that extends 2026.11 extends ours
    below = folders[1:] if more.extends == name else folders
    known = {found.stem for folder in below for found in folder.rglob("*.yaml")}
    if more.extends not in known or more.extends > name:
        raise InvalidInput(
            f"extends: there is no release {more.extends} before {name}",
            file.where(("extends",)),
            allowed=listed(sorted(one for one in known if one <= name)),
        )
    base = _release(more.extends, below)
    mpi = {**base.mpi}
    for product, versions in more.mpi.items():
        mpi[product] = [*versions, *mpi.get(product, [])]
    return base.model_copy(
        update={
            "name": more.name,
            "title": more.title or base.title,
            "status": more.status or base.status,
            "mpi": mpi,
            "packages": [*base.packages, *more.packages],
        }
    )


def _placed(release: R, file: YamlFile) -> R:
    """``release``, each row of which knows its own file and line when it is added to another's.

    Raises InvalidInput where its file is called otherwise.
    """
    if release.name != file.path.stem:
        what = "name: a release's file is called after the release"
        where = file.where(("name",))
        raise InvalidInput(what, where, found=release.name, allowed=file.path.stem)
    for number, row in enumerate(release.packages):
        row.stands(file, "packages", number)
    for product, versions in release.mpi.items():
        for number, version in enumerate(versions):
            version.stands(file, "mpi", product, number)
    return release


def load_policy() -> Policy:
    """The policy tables, the site's rows before ours, with the errors of all of them at once."""
    return _policy(tuple(home().folders("policy")))


@cache
def _policy(folders: tuple[Path, ...]) -> Policy:
    problems: list[Problem] = []
    parts: dict[str, Any] = {}
    for place in folders:
        problems += _unknown_files(place, folders[-1])
        for name, model in FILES.items():
            path = place / f"{name}.yaml"
            if place != folders[-1] and not path.is_file():
                continue
            try:
                parts = _merged(parts, dict(_model(model, path)))
            except InvalidInput as error:
                problems += error.problems
    if problems:
        raise InvalidInput(*problems)
    return Policy(**parts)


def _unknown_files(site: Path, ours: Path) -> list[Problem]:
    """The files of a site's policy that nothing reads, because ours has none of that name."""
    known = sorted(path.name for path in ours.glob("*.yaml"))
    return [
        Problem(
            "this is not a file"
            if path.name in known
            else "there is no policy of this name, so nothing reads it",
            relative(path),
            allowed=listed(known),
            nearest=nearest(path.name, known),
            todo="rename it, or move its rows into one of these",
        )
        for path in sorted(site.glob("*.y*ml"))
        if path.name not in known or not path.is_file()
    ]


def _merged(first: dict[str, Any], then: dict[str, Any]) -> dict[str, Any]:
    """The tables of both, the first one's rows before the other's and instead of those.

    A fabric's own build stands where its row is, before the builds of the same policy.
    """
    merged = dict(first)
    for name, rows in then.items():
        there = merged.get(name)
        if isinstance(rows, dict):
            new = {key: row for key, row in rows.items() if key not in (there or {})}
            merged[name] = {**(there or {}), **new}
            if name == "fabrics":
                own = [build for key, row in new.items() if (build := row.build(key))]
                merged["builds"] = [*merged.get("builds", []), *own]
        else:
            merged[name] = [*(there or []), *rows]
    return merged


def _model(model: type[M], path: Path) -> M:
    if not path.is_file():
        what = "this is not a file" if path.exists() else "there is no such file"
        todo = "give the path of a YAML file; `mvstack discover > mine.yaml` writes a system's"
        raise InvalidInput(what, where=relative(path), todo=todo)
    return validated(model, read_yaml(path))
