"""Render all systems at once, or see whether what is committed is still fresh."""

from __future__ import annotations

from pathlib import Path

from mvstack import stages
from mvstack.errors import CheckFailed, MvstackError, Problem, relative, together
from mvstack.model.load import REPOSITORY, load_policy, load_release, load_system, system_names
from mvstack.model.policy import Policy, When
from mvstack.plan import make_plan, partitions_of, split_name
from mvstack.render import RENDERED, render, stale, template, write

DOCS = REPOSITORY / "docs"


def render_systems(names: list[str], to: Path | None, check: bool) -> dict[str, int]:
    """Render ``names`` (all but `local` when empty) below ``to``; folder → number of files.

    With ``check`` nothing is written. Raises CheckFailed naming every file that is not fresh, and
    InvalidInput or Refused with all problems of all systems, before anything is written.
    """
    base = to or RENDERED
    release, policy = load_release(), load_policy()
    rendered: dict[Path, dict[str, str]] = {}
    errors: list[MvstackError] = []
    for name in names or [name for name in system_names() if name != "local"]:
        try:
            system_name, partition = split_name(name)
            system = load_system(system_name)
            if system.discover:
                system, _ = stages.load(name)
            for part in partitions_of(system, partition):
                plan = make_plan(system, part, release, policy, fallback=system.discover)
                rendered[base / system.name / part] = render(plan)
        except MvstackError as error:
            errors.append(error)
    if errors:
        raise together(errors, "Nothing was rendered.")
    tables = {} if names or to else {DOCS / "policy.md": policy_page(policy)}
    if check:
        _fresh(rendered, base, tables, everything=not names)
    else:
        for folder, files in rendered.items():
            write(files, folder)
        for path, text in tables.items():
            path.write_text(text)
    return {relative(folder): len(files) for folder, files in rendered.items()}


def policy_page(policy: Policy) -> str:
    """docs/policy.md: the policy's tables for a reader."""
    return template("policy.md", policy=policy, when=_condition)


def _condition(when: When) -> str:
    """A row's condition in words: ``fabric infiniband or roce; gpu none``."""
    parts = []
    for name, value in when.model_dump(exclude_defaults=True).items():
        words = " or ".join(value) if isinstance(value, list) else str(value)
        parts.append(f"{name.replace('_', ' ')} {words}".replace("|", "\\|"))
    return "; ".join(parts)


def _fresh(
    rendered: dict[Path, dict[str, str]], base: Path, tables: dict[Path, str], everything: bool
) -> None:
    problems = [
        Problem(f"stale: {what}", relative(folder))
        for folder, files in rendered.items()
        for what in stale(files, folder)
    ]
    problems += [
        Problem("stale: not what its inputs give now", relative(path))
        for path, text in tables.items()
        if not path.is_file() or path.read_text() != text
    ]
    if everything and base.is_dir():
        there = {path.parent for path in base.glob("*/*/plan.json")}
        problems += [
            Problem("no system of this repository renders it any more", relative(folder))
            for folder in sorted(there - set(rendered))
        ]
    if problems:
        last = problems[-1]
        problems[-1] = Problem(last.message, last.where, todo="mvstack render, and commit it")
        raise CheckFailed(*problems)
