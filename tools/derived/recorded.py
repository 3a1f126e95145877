"""Rows of references/<system>.yaml for the figures of a run, as a difference that a person reviews.

How far a figure may be off follows from the kept runs of the same machine with the same MPI, by
the rule that tells what became slower (:mod:`mvstack.test.history`).
"""

import difflib
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

from mvstack.model.yamlfile import parse_yaml
from mvstack.support.files import read_text, write_atomically
from mvstack.support.git import told
from mvstack.support.home import DATA, home
from mvstack.support.words import few
from mvstack.test.history import ENOUGH, LESS_IS_BETTER, MARGIN, Json, earlier_runs, figures

#: Runs that differ by more than this factor say too little of what a figure should be.
WIDEST = 2
KEY = ("partition", "mpi", "figure", "size", "unit")


def record(plan: Json, results: Json) -> list[str]:
    """Write the rows into the site's folder; give the difference, and what was not written."""
    place, site = home().file("references", f"{plan['system']}.yaml"), home().site
    old = read_text(place) if place.is_file() else ""
    commit = told(DATA, "rev-parse", "--short", "HEAD").strip()
    rows, left = rows_of(plan, results, earlier_runs(Path(plan["tree"])), commit)
    new, name = merged(old, rows, place), f"references/{place.name}"
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), name, name, lineterm="")
    if not rows:
        return [*left, "no figure has a row to write"]
    if not site:
        return [*lines, *left, f"nothing was written: mvstack --site DIR … writes DIR/{name}"]
    write_atomically(site / name, new, mode=None)
    return [*lines, *left, f"written: {site / name}; review it as any change"]


def merged(old: str, rows: list[Json], path: Path) -> str:
    """``old`` with ``rows`` in the place of those of the same figure, else at its end."""
    file, lines, more = parse_yaml(old, path), old.splitlines(), list(rows)
    there = file.data or []
    starts = [*(file.line((at,)) - 1 for at in range(len(there))), len(lines)]
    for at, had in reversed([*enumerate(there)]):
        for row in [one for one in more if all(one.get(key) == had.get(key) for key in KEY)]:
            more.remove(row)
            end = starts[at + 1]
            while not lines[end - 1].strip() or lines[end - 1].startswith("#"):
                end -= 1  # what stands before the next row is of that
            lines[starts[at] : end] = _text(row)
    new = "\n".join([*lines, *(line for row in more for line in _text(row)), ""])
    parse_yaml(new, path)
    return new


def _text(row: Json) -> list[str]:
    # JSON is YAML; but YAML takes 1e-06 for a text
    words = [(key, f"{x:f}" if isinstance(x, Decimal) else json.dumps(x)) for key, x in row.items()]
    return [f"{'  ' if at else '- '}{key}: {x}" for at, (key, x) in enumerate(words)]


def rows_of(
    plan: Json, results: Json, runs: list[Json], commit: str
) -> tuple[list[Json], list[str]]:
    """A row for each figure of checks that passed, and why others have none.

    ``runs`` are those of the machine that were kept, this one among them.
    """
    kept: dict[Any, list[float]] = {}
    for key, row, title in (one for run in runs for one in figures(run)):
        kept.setdefault((key, title), []).append(row["value"])
    now, rows, left = [*figures(results)], [], dict[str, list[str]]()
    names = [(title.partition(" with ")[2], *key[2:]) for key, _, title in now]
    for name, (key, row, title) in zip(names, now, strict=True):
        values, (mpi, figure, size, unit) = kept.get((key, title), []), name
        less = unit in LESS_IS_BETTER
        times = [value if less else 1 / value for value in (row["value"], *values)]
        spread = max(times) / min(times)
        why = ""
        if len(values) <= ENOUGH:
            why = f"fewer than {ENOUGH + 1} kept runs do not say how much it varies"
        elif names.count(name) > 1:
            why = "it is given by several checks, or on several numbers of ranks"
        elif spread > WIDEST:
            why = f"kept runs differ by more than a factor of {WIDEST}"
        if why:
            of = "" if size is None else f" of {size} bytes"
            left.setdefault(why, []).append(f"{title}: {figure}{of}")
            continue
        worst = max(times) * max(1 + MARGIN, spread) / times[0]
        part = math.ceil(100 * (worst - 1 if less else 1 - 1 / worst)) / 100
        (build,) = (one for one in plan["mpi"] if one["module"] == mpi)
        made = {"partition": plan["partition"], "mpi": mpi, "figure": figure}
        made |= {} if size is None else {"size": size}
        made |= {"value": Decimal(f"{row['value']:.4g}"), "unit": unit}
        made |= {"below": None if less else part, "above": part if less else None}
        made["source"] = (
            f"mvstack test {results['started'][:10]}, nodes of {plan['cores']} cores "
            f"({plan['target']}), {build['software']} {build['version']} {build['device']}, "
            f"mvapich-stack {commit}; {len(values)} runs had {min(values):g} to {max(values):g} "
            f"{unit}: the worst, and as much more as they differ, {MARGIN:.0%} at least"
        )
        rows.append(made)
    return rows, [f"no row, for {why}: {few(what)}" for why, what in left.items()]
