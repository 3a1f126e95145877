"""Find and read the hand-written files: systems, releases, policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mvstack.model.base import M, validated
from mvstack.model.policy import Builds, Launchers, Policy, Products, Refusals
from mvstack.model.release import Release
from mvstack.model.system import System
from mvstack.model.yamlfile import parse_yaml, read_yaml
from mvstack.support.errors import InvalidInput, Problem, relative
from mvstack.support.words import listed, nearest

REPOSITORY = Path(__file__).resolve().parents[3]
ENVIRONMENTS = REPOSITORY / "environments"


def system_names() -> list[str]:
    """The systems of this repository, sorted."""
    return sorted(path.stem for path in (ENVIRONMENTS / "systems").glob("*.yaml"))


def load_system(name_or_path: str) -> System:
    """The system of that name, or the one described by a file (any argument with / or .yaml)."""
    if "/" in name_or_path or name_or_path.endswith((".yaml", ".yml")):
        return _model(System, Path(name_or_path))
    path = ENVIRONMENTS / "systems" / f"{name_or_path}.yaml"
    if not path.is_file():
        known = system_names()
        close = nearest(name_or_path, known)
        raise InvalidInput(
            Problem(
                f"there is no system {name_or_path}"
                + (f"; did you mean {close}?" if close else ""),
                allowed=listed(known),
                nearest=close,
                todo="name one of these, or give the path of a system file "
                "(`mvstack discover > mine.yaml` writes one)",
            )
        )
    system = _model(System, path)
    if system.name != path.stem:
        file = read_yaml(path)
        raise InvalidInput(
            Problem(
                "name: a system's file is called after the system",
                file.where(("name",)),
                found=system.name,
                allowed=path.stem,
            )
        )
    return system


def parse_system(text: str, path: Path) -> System:
    """A system from text, e.g. what `discover` found; ``path`` names it in errors."""
    return validated(System, parse_yaml(text, path))


def release_names() -> list[str]:
    """The releases of this repository, newest first."""
    return sorted((p.stem for p in (ENVIRONMENTS / "releases").glob("*.yaml")), reverse=True)


def load_release(name: str | None = None) -> Release:
    """The release of that name; without a name the newest."""
    known = release_names()
    name = name or known[0]
    if name not in known:
        raise InvalidInput(
            Problem(
                f"there is no release {name}", allowed=listed(known), nearest=nearest(name, known)
            )
        )
    return _model(Release, ENVIRONMENTS / "releases" / f"{name}.yaml")


def load_policy(folder: Path | None = None) -> Policy:
    """The policy tables, with the errors of all of them at once."""
    folder = folder or ENVIRONMENTS / "policy"
    problems: list[Problem] = []
    parts: dict[str, Any] = {}
    for name, model in (
        ("builds", Builds),
        ("launchers", Launchers),
        ("refusals", Refusals),
        ("products", Products),
    ):
        try:
            parts[name] = getattr(_model(model, folder / f"{name}.yaml"), name)
        except InvalidInput as error:
            problems += error.problems
    if problems:
        raise InvalidInput(*problems)
    return Policy(**parts)


def _model(model: type[M], path: Path) -> M:
    if not path.is_file():
        what = "this is no file" if path.exists() else "there is no such file"
        todo = "give the path of a YAML file; `mvstack discover > mine.yaml` writes a system's"
        raise InvalidInput(Problem(what, where=relative(path), todo=todo))
    return validated(model, read_yaml(path))
