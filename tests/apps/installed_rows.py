"""Rows of the record out of an installed tree: what was built, how large, what checks said."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mvstack.model.release import Release
from mvstack.plan import easyconfigs
from mvstack.plan.targets import family_of
from mvstack.report.seen import Row, hash_of
from mvstack.tree.records import kept_plan


def merged(old: Iterable[Row], new: Iterable[Row]) -> list[Row]:
    """``old`` with ``new`` in place of what is older, in order of names."""
    rows = {row.key: row for row in [*old, *new]}
    return [rows[key] for key in sorted(rows, key=lambda key: tuple(part.lower() for part in key))]


def written(rows: Iterable[Row]) -> str:
    """The rows as the record's text."""
    return "".join(json.dumps(row.model_dump(), ensure_ascii=False) + "\n" for row in rows)


def rows_of(tree: Path) -> list[Row]:
    """A row for each package that the records of ``tree`` know as built with EasyBuild."""
    plan = kept_plan(tree)
    built = _last(tree / "records" / "builds.jsonl")
    cases = _cases(tree / "records" / "results")
    family = family_of(plan["target"])
    elsewhere = "" if family == "x86_64" else f" on {family}"
    rows = []
    for package in plan["packages"]:
        row = built.get(package["easyconfig"])
        if row is None:
            continue
        name = f"{package['name']} {package['version']}"
        seen = [
            case
            for case in cases.values()
            if case["benchmark"] == name and case["mpi"] == package["mpi"]
        ]
        passed = [case for case in seen if case["result"] == "pass"]
        if row.get("result") not in ("built", "cached"):
            state = "failed"
        else:
            state = "run" if seen and len(passed) == len(seen) else "built"
        folder = package["easyconfig"].removesuffix(".eb").removeprefix(f"{package['name']}-")
        rows.append(
            Row(
                package=package["name"],
                version=package["version"],
                builder="easybuild",
                mpi=(package["mpi"] or f"gcc/{plan['compiler']['version']}") + elsewhere,
                date=time.strftime("%F", time.gmtime()),
                state=state,
                of=hash_of(package["easyconfig"]),
                seconds=row.get("seconds"),
                size_mb=megabytes(tree / "software" / package["name"] / folder),
                checks=_said(seen, passed),
                figure=_figure(passed, plan["cores"]),
                bytes=_bytes(row),
            )
        )
    return rows


def rows_resolved(release: Release) -> list[Row]:
    """A row for each package with an easyconfig; for a caller that has just resolved them all."""
    return [
        Row(
            package=package.name,
            version=package.version,
            builder="easybuild",
            mpi="",
            date=time.strftime("%F", time.gmtime()),
            state="resolves",
            of=hash_of(file),
        )
        for package in release.packages
        if package.where.builder != "spack" and (file := easyconfigs.by_hand(package, release.name))
    ]


def _last(path: Path) -> dict[str, dict[str, Any]]:
    """The last row of builds.jsonl for each easyconfig."""
    found: dict[str, dict[str, Any]] = {}
    for line in path.read_text(errors="replace").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue  # cut short when a run was killed
        found[str(row.get("easyconfig"))] = row
    return found


def _cases(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The newest case of each check and MPI, over all results that were kept."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for path in sorted(folder.glob("*.json")):
        for case in json.loads(path.read_text())["cases"]:
            if case["result"] != "skip":
                found[case["check"], case["mpi"]] = case
    return found


def _said(seen: list[dict[str, Any]], passed: list[dict[str, Any]]) -> str:
    if not seen:
        return ""
    ranks = sorted({case["ranks"] for case in passed if case["ranks"]})
    said = f"{len(passed)} of {len(seen)} passed"
    return said + (f" on {', '.join(map(str, ranks))} ranks" if ranks else "")


def _figure(passed: list[dict[str, Any]], cores: int) -> str:
    """The first figure of the run with the most ranks that had a core each."""

    def order(case: dict[str, Any]) -> tuple[bool, int]:
        ranks = case["ranks"] or 0
        return (ranks > cores, -ranks)

    for case in sorted(passed, key=order):
        for figure in case["figures"]:
            if figure["value"] is not None:
                value = f"{figure['value']:.4g} {figure['unit']}"
                return f"{figure['name'].replace('_', ' ')} {value} on {case['ranks']} ranks"
    return ""


def _bytes(row: dict[str, Any]) -> str:
    notes = [str(one.get("note", "")) for one in row.get("sources", []) if not one.get("upstream")]
    return "; ".join(dict.fromkeys(note for note in notes if note))


def megabytes(folder: Path) -> int | None:
    """Of all files below ``folder``, in millions of bytes; None where there is no such folder."""
    if not folder.is_dir():
        return None
    size = 0
    for place, _, names in os.walk(folder):
        size += sum((Path(place) / name).lstat().st_size for name in names)
    return round(size / 1e6)
