"""``mvstack ci check``: a project's settings and what they name, every error at once."""

from pathlib import Path

from mvstack.cache.place import place
from mvstack.ci.sites import project_of
from mvstack.model.ci import TREE_LENGTH, Site, load_settings
from mvstack.model.load import load_policy, load_release, load_system
from mvstack.plan.make import make_plan, partitions_of
from mvstack.support.errors import InvalidInput, MvstackError, together


def check_project(file: Path) -> list[str]:
    """The partitions that the settings ``file`` serves. Raises InvalidInput, Refused."""
    settings = load_settings(file)
    project, _ = project_of(file)
    release, policy = load_release(), load_policy()
    errors: list[MvstackError] = []
    served: list[str] = []

    def wrong(message: str, **more: str) -> None:
        errors.append(InvalidInput(message, str(file), **more))

    for one in settings.systems:
        try:
            name = one.system
            system = load_system(str(project / name) if name.endswith((".yaml", ".yml")) else name)
            for part in one.partitions or partitions_of(system, ""):
                partitions_of(system, part)
                make_plan(system, part, release, policy)
                served.append(f"{system.name}/{part}")
                tree = f"/{release.name}/{system.name}-{part}"
                errors += _too_long(one, tree, settings.tree_length, str(file))
        except MvstackError as error:
            errors.append(error)
    if twice := sorted({name for name in served if served.count(name) > 1}):
        wrong(f"{', '.join(twice)}: two entries mean the same partition")
    for cache in filter(None, [*settings.caches, settings.push]):
        try:
            if place(cache).folder is None and cache == settings.push:
                wrong("push: packages are pushed into a folder, not to an address", found=cache)
        except MvstackError as error:
            errors.append(error)
    if missing := [key for key in settings.trust if not (project / key).is_file()]:
        wrong(
            f"trust: there is no file {', '.join(missing)}",
            todo="write it by `mvstack cache keys export --to FILE` where packages are signed, and "
            "commit it",
        )
    if errors:
        raise together(errors, "No pipeline was made.")
    return served


PIPELINE = "/" + "9" * 10
"""The folder of one pipeline below ``staging``: GitLab.com's numbers have ten digits."""


def _too_long(one: Site, tree: str, length: int, file: str) -> list[MvstackError]:
    """Places that packages could not be moved to, because their paths are too long."""
    shorter = "name a shorter folder, e.g. a link to this one"
    paths = {"staging": one.staging + PIPELINE + tree, "root": (one.root or "") + tree}
    return [
        InvalidInput(
            f"{name} of {one.system} is too long by {len(path) - length} characters",
            file,
            found=path,
            allowed=f"{length} characters with release and partition (tree_length)",
            because="packages are built at a path of that length, and can only be moved to "
            "paths that are no longer",
            todo=shorter
            + (f", or a greater tree_length ({TREE_LENGTH} at most)" * (length < TREE_LENGTH)),
        )
        for name, path in paths.items()
        if len(path) > length
    ]
