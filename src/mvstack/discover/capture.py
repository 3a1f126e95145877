"""Keeping what discovery looked at, as a root that gives the same findings elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

from mvstack.discover.look import examine
from mvstack.discover.view import CAPTURE, Output, Seen, View
from mvstack.support.errors import InvalidInput, Problem, relative


def capture(target: Path, root: Path = Path("/")) -> None:
    """Write all that ``look(root)`` reads and asks below ``target``, a new or empty folder.

    ``look(target)`` then finds what was found here. Raises InvalidInput when ``target`` is not
    empty or cannot be written; then nothing that was there is changed.
    """
    _must_be_empty(target)
    view = View(root)
    examine(view)
    try:
        _write(view.seen, target)
    except OSError as error:
        raise InvalidInput(
            Problem(
                "the capture cannot be written",
                relative(target),
                found=str(error),
                todo="name a folder on a disk that you may write to",
            )
        ) from error


def _must_be_empty(target: Path) -> None:
    try:
        used = target.is_symlink() or (target.exists() and any(target.iterdir()))
    except OSError as error:
        raise InvalidInput(
            Problem("this is no folder to write to", relative(target), found=str(error))
        ) from error
    if used:
        raise InvalidInput(
            Problem(
                "a capture goes to a new or empty folder, and this one holds something",
                relative(target),
                todo="name a folder that does not exist yet",
            )
        )


def _write(seen: Seen, target: Path) -> None:
    kept = target / CAPTURE
    kept.mkdir(parents=True, exist_ok=True)
    for path, names in seen.folders.items():
        for name in names:
            child = f"{path.rstrip('/')}/{name}"
            if child not in seen.texts and child not in seen.links:
                _below(target, child).mkdir(parents=True, exist_ok=True)
        _below(target, path).mkdir(parents=True, exist_ok=True)
    for path, text in seen.texts.items():
        file = _below(target, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    _write_links(seen, target)
    for path in sorted(seen.present, reverse=True):  # what is below a folder before the folder
        file = _below(target, path)
        if not file.exists() and not file.is_symlink():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
    _write_tools(seen, kept)


def _write_links(seen: Seen, target: Path) -> None:
    """Links keep the last part of their target only: that is all that is ever looked at.

    A link to a device's folder below which something was read (/sys/class/drm/card0/device)
    leads to a folder of that name beside it; other links dangle.
    """
    for path, points in sorted(seen.links.items()):
        file = _below(target, path)
        if file.is_dir() and not file.is_symlink():
            file.rename(file.with_name(Path(points).name))
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.is_symlink():
            file.symlink_to(Path(points).name)


def _write_tools(seen: Seen, kept: Path) -> None:
    for name, output in seen.outputs.items():
        (kept / name).write_bytes(_without_private(name, output).encode())
        if output.timed_out:
            (kept / f"{name}.status").write_text("timeout\n")
        elif output.status:
            (kept / f"{name}.status").write_text(f"{output.status}\n")
    for tool, path in seen.paths.items():
        (kept / f"which-{tool}.txt").write_text(f"{path}\n")
    if seen.environment:
        lines = [f"{name}={value}\n" for name, value in sorted(seen.environment.items())]
        (kept / "environment.txt").write_text("".join(lines).replace("\r", ""))
    if seen.denied:
        (kept / "denied.txt").write_text("".join(f"{path}\n" for path in sorted(seen.denied)))


def _without_private(name: str, output: Output) -> str:
    """What a tool printed, less what is not looked at and is nobody's business."""
    if name.startswith("scontrol-") and output.ok:
        lines = output.text.splitlines(keepends=True)
        return "".join(line for line in lines if line.startswith(("MpiDefault", "SLURM_VERSION")))
    return re.sub(r"UUID: [A-Z]+-[0-9a-f-]+", "UUID: not kept", output.text)


def _below(target: Path, path: str) -> Path:
    return target / path.lstrip("/")
