"""Run Packer: validate the templates for an image, build it, and let Packer clean up after itself.

Packer removes what it made when a build fails or is interrupted. So an interrupt is handed on to it
and waited for, and when mvstack itself is killed Packer is interrupted, not killed.
"""

import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from mvstack.support.errors import BuildFailed, InvalidInput, Missing, Refused
from mvstack.support.home import DATA
from mvstack.support.processes import run, started

TEMPLATES = DATA / "images"
_VERSION = re.compile(r"Packer v?(\d+)\.(\d+)\.(\d+)")
#: The oldest Packer that knows all that the templates ask of a cloud.
CURRENT = (1, 14, 0)
#: The first that has plugins; Debian 12's 1.6.6 has them built in and does not know this file.
_PLUGINS, _PLUGINS_SINCE = "plugins.pkr.hcl", (1, 7, 0)
POLL = 0.1  # seconds between two looks at what Packer says
CLEANING = 900  # seconds that an interrupted Packer has to remove what it made
# What Packer says in a failed build, and what it means; the first that is found is told.
_REASONS = (
    re.compile(r"(FAILED: .*)"),
    re.compile(r"(REFUSED: .*)"),
    re.compile(r"(AMI Name: '[^']*' is used by an existing AMI.*)"),
    re.compile(r"(the managed image named .* already exists.*)", re.I),
    re.compile(r"(.*[Ii]mage [Vv]ersion .* already exists.*)"),
    re.compile(r"(Timeout waiting for SSH.*)"),
    re.compile(r"(.*(?:connection lost|remote command exited without|ssh: disconnect|EOF).*)"),
    re.compile(r"(Script exited with non-zero exit status: \d+).*"),
)


def version() -> tuple[int, int, int]:
    """The version of the Packer on PATH. Raises Missing."""
    try:
        said = run(["packer", "version"], env=_environment()).text
    except FileNotFoundError:
        said = ""
    if found := _VERSION.search(said):
        major, minor, patch = map(int, found.groups())
        return major, minor, patch
    raise Missing(
        "Packer is not installed",
        found=said.strip()[:200],
        todo="apt-get install -y packer   (or https://developer.hashicorp.com/packer/install)",
    )


def too_old(cloud: str) -> str:
    """Why the Packer on PATH cannot make an image for ``cloud``; "" when it can.

    It would have to be given templates without these settings, and an image must not lack them.
    """
    found = version()
    if cloud == "qemu" or found >= CURRENT:
        return ""
    here, wanted = ".".join(map(str, found)), ".".join(map(str, CURRENT[:2]))
    return f"Packer {here} is too old for images of {cloud}: they need {wanted} or newer"


def check(cloud: str) -> None:
    """Raise Missing when the Packer on PATH cannot make an image for ``cloud``."""
    if why := too_old(cloud):
        raise Missing(
            why,
            because="older ones do not know its security settings (IMDSv2, trusted launch)",
            todo="install it (https://developer.hashicorp.com/packer/install), then, once: "
            "packer init images",
            outcome="Nothing was built.",
        )
    if cloud != "qemu" and version() >= _PLUGINS_SINCE:  # older ones have them built in
        needed = re.findall(r'source\s+=\s+"(\S+)"', (TEMPLATES / _PLUGINS).read_text())
        there = run(["packer", "plugins", "installed"], env=_environment()).text
        name = {"aws": "amazon"}.get(cloud, cloud)
        if lacking := [one for one in needed if one.endswith(f"/{name}") and one not in there]:
            raise Missing(
                "Packer's plugin is not installed",
                found=", ".join(lacking),
                todo="packer init images   (once; it needs the network)",
                outcome="Nothing was built.",
            )


def templates() -> dict[str, str]:
    """The templates of this repository, by name."""
    return {path.name: path.read_text() for path in sorted(TEMPLATES.glob("*.pkr.hcl"))}


def prepare(folder: Path) -> None:
    """Write the templates to ``folder``; a Packer without plugins gets no list of them."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.pkr.hcl"):
        old.unlink()
    has_plugins = version() >= _PLUGINS_SINCE
    for name, text in templates().items():
        if has_plugins or name != _PLUGINS:
            (folder / name).write_text(text)


def validate(folder: Path, source: str, files: list[Path], variables: dict[str, Any]) -> None:
    """`packer validate` of one source. Raises InvalidInput with Packer's own words."""
    command = ["packer", "validate", *_arguments(source, files, variables), "."]
    done = run(command, cwd=folder, env=_environment())
    if not done.ok:
        said = done.said.strip()
        if "packer init" in said:
            raise Missing(
                "Packer's plugins are not installed",
                found=" ".join(said.split())[:600],
                todo="packer init images   (once; it needs the network)",
            )
        raise InvalidInput(
            f"packer validate refuses the templates for {source}",
            str(folder),
            found=" ".join(said.split())[:1500],
            todo="see whether the site's file has what it wants (--settings); else correct "
            "images/*.pkr.hcl",
        )


def build(
    folder: Path,
    source: str,
    files: list[Path],
    variables: dict[str, Any],
    log: Path,
    note: Callable[[str], None],
) -> list[dict[str, Any]]:
    """`packer build` of one source; what its manifest says of what was made.

    Raises BuildFailed when it fails, after Packer has removed what it made, with the line that says
    why; Refused when an image of that name exists already. An interrupt is handed on to Packer and
    raised again when it has cleaned up.
    """
    command = [
        "packer",
        "build",
        "-color=false",
        "-timestamp-ui",
        *_arguments(source, files, variables),
        ".",
    ]
    log.parent.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []

    def line(text: str) -> None:
        lines.append(text)
        if told := _bare(text):
            note(told)

    status = _run(command, folder, _environment(), log, line)
    if status:
        raise _failure(lines, status, source, log)
    manifest = Path(str(variables["manifest"]))
    made = json.loads(manifest.read_text())
    builds: list[dict[str, Any]] = made["builds"]
    return builds


def _arguments(source: str, files: list[Path], variables: dict[str, Any]) -> list[str]:
    words = [f"-only={source}", *(f"-var-file={path.resolve()}" for path in files)]
    for name, value in variables.items():
        text = value if isinstance(value, str) else json.dumps(value)
        words.append(f"-var={name}={text}")
    return words


def _environment() -> dict[str, str]:
    return {**os.environ, "CHECKPOINT_DISABLE": "1", "PACKER_NO_COLOR": "1"}


def _run(
    command: list[str], cwd: Path, env: dict[str, str], log: Path, line: Callable[[str], object]
) -> int:
    """Packer writes to ``log`` itself: a pipe that broke when we are killed would end it."""
    with log.open("ab") as said, log.open(errors="replace") as reader:
        reader.seek(0, os.SEEK_END)
        told = _Lines(reader, line)
        try:
            with started(command, env, said, cwd=cwd, grace=CLEANING) as process:
                try:
                    while process.poll() is None:
                        told.read()
                        time.sleep(POLL)
                except BaseException:
                    line("mvstack: interrupted; Packer removes what it made")
                    raise
        finally:
            told.read()
        return process.returncode


class _Lines:
    """Hands on whole lines of a file that grows."""

    def __init__(self, stream: TextIO, line: Callable[[str], object]) -> None:
        self._stream, self._line, self._begun = stream, line, ""

    def read(self) -> None:
        *whole, self._begun = (self._begun + self._stream.read()).split("\n")
        for text in whole:
            self._line(text)


def _bare(text: str) -> str:
    """A line of Packer without its time and the name of the source."""
    return re.sub(r"^(\d{4}-\S+Z: )?(==> )?\s*([a-z][\w-]*\.[\w-]+: ?)?", "", text).strip()


def _failure(lines: list[str], status: int, source: str, log: Path) -> BuildFailed | Refused:
    said = ""
    for pattern in _REASONS:
        hits = [found.group(1) for text in lines if (found := pattern.search(text))]
        if hits:
            said = hits[-1].strip()
            break
    # Packer's own last word on this source, when nothing better is known
    last = [text for text in lines if text.startswith(f"--> {source}: ")]
    said = said or (last[-1].removeprefix(f"--> {source}: ") if last else "")
    shown = said or " | ".join(filter(None, (_bare(text) for text in lines[-4:])))
    kept = [_bare(text) for text in lines if "FAILED" in text or "REFUSED" in text]
    detail = "; ".join(dict.fromkeys([shown, *kept]))[:1500]
    outcome = "Nothing was published; Packer removes what it made (mvstack image clean looks)."
    if re.search(r"is used by an existing AMI|already exists", shown):
        return Refused(
            "an image of that name and version exists already",
            str(log),
            found=shown[:600],
            because="a version of an image never changes once it is made",
            todo="one whose build did not end: `mvstack image clean --cloud …` removes it; "
            "else name the next number with --version",
            outcome=outcome,
        )
    return BuildFailed(
        f"Packer could not build {source} (status {status})",
        str(log),
        found=detail,
        todo="read the log named above; `mvstack image clean` shows whether anything was left",
        outcome=outcome,
    )
