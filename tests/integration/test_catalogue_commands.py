"""Every command on a page of the catalogue is run by a test, or the page says why not.

tools/catalogue/commands.yaml has the commands that are not run here; the rest runs as it stands.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from shown_commands import blocks, commands_of, shown, texts
from typer import Exit
from typer.core import TyperGroup
from typer.main import get_command

from mvstack.cli.main import app
from mvstack.model.load import load_release
from mvstack.support.errors import Missing
from mvstack.support.home import DATA
from mvstack.tree.modules import lmod_command

from commands import BLOCK, SHELL, row_of, rows  # isort: skip  # shown_commands.py says where it is

TEXT = ("text", "yaml", "ini", "json", "python", "nginx")
OURS = re.compile(r"(?:\./)?mvstack (?P<words>.*)")


def test_each_code_block_says_its_language() -> None:
    known = {*TEXT, *SHELL}
    found = [(page, one) for page, text in texts().items() for one in blocks(text)]
    assert [(page, text[:60]) for page, (language, text) in found if language not in known] == []
    rest = {page: BLOCK.sub("", text) for page, text in texts().items()}
    indented = [page for page, text in rest.items() if re.search(r"\n\n {4}[^ |*`-]", text)]
    assert [one for one in indented if not one.startswith("systems/")] == []  # those have tabs


def test_each_command_is_one_of_the_shell() -> None:
    """Placeholders such as <tree> and … are words there."""
    lines = [re.sub(r"<[^<>]*>", "WORD", one) for one in shown()]
    done = subprocess.run(["bash", "-n"], input="\n".join(lines), text=True, capture_output=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_each_mvstack_command_is_one_that_it_takes() -> None:
    """Commands, arguments and options are those of the command line as it is."""
    refused = []
    for command in shown():
        for part in re.split(r" (?:&&|\|\||\||>) ", re.sub(r"\$\([^)]*\)", "", command)):
            if ours := OURS.fullmatch(part):
                refused += [f"{command}: {one}" for one in complaint(shlex.split(ours["words"]))]
    assert refused == []


def complaint(words: list[str]) -> list[str]:
    """What the command line has against ``words``."""
    command = get_command(app)
    try:
        context = command.make_context("mvstack", words)
        while isinstance(command, TyperGroup):
            left = [*context._protected_args, *context.args]
            _, command, left = command.resolve_command(context, left)
            context = command.make_context(command.name, left, parent=context)
    except (Exit, SystemExit):  # --help and the like
        return []
    except Exception as error:
        if not hasattr(error, "format_message"):  # what the command line says of wrong words
            raise
        return [error.format_message()]
    return []


def test_a_wrong_option_would_be_seen() -> None:
    for words in ("install local --profil full", "instal local", "cache keys make X", "diff"):
        assert complaint(words.split()), words


def test_each_row_is_of_a_command_that_is_shown() -> None:
    needed = {row_of(one) for one in shown()}
    assert [row.match for row in rows() if row not in needed] == []


def test_each_other_test_that_is_named_has_the_words() -> None:
    named = [row for row in rows() if row.by]
    wrong = [row.match for row in named if row.words not in (DATA / row.by).read_text()]
    assert wrong == []


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder like a clone, where `mvstack` can be typed, with a home and a root of its own."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("docs", "easyconfigs", "environments", "tests"):
        (folder / name).symlink_to(DATA / name)
    program = folder / "mvstack"
    program.write_text(f'#!/bin/bash\nexec {sys.executable} -P -m mvstack "$@"\n')
    program.chmod(0o755)
    config = folder / "home" / ".config" / "easybuild" / "config.cfg"
    config.parent.mkdir(parents=True)
    (ini,) = (text for language, text in blocks(texts()["docs/easybuild.md"]) if language == "ini")
    config.write_text(ini.replace("/path/to/easyconfigs", str(DATA / "easyconfigs")))
    yield folder


def environment(place: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MVSTACK_", "XDG_"))}
    return kept | {
        "HOME": str(place / "home"),
        "PATH": f"{place}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(DATA / "src"),
        "MVSTACK_ROOT": str(place / "root"),
        "EASYBUILD_ALLOW_USE_AS_ROOT_AND_ACCEPT_CONSEQUENCES": "1",
        "TERM": "dumb",
    }


def pages_to_run() -> dict[str, list[str]]:
    """The commands without a row, by the first page that shows them."""
    found: dict[str, list[str]] = {}
    for command, where in shown().items():
        if row_of(command) is None:
            found.setdefault(where[0], []).append(command)
    return found


@pytest.mark.parametrize("page", pages_to_run())
def test_the_other_commands_run_as_they_stand(page: str, place: Path) -> None:
    script = []
    for command in pages_to_run()[page]:
        if command.startswith("eb "):
            try:
                lmod = Path(lmod_command("/opt/mvapich-stack"))
                script.append(f"source {lmod.parents[1]}/init/bash")
            except Missing as error:
                pytest.skip(error.problems[0].message)
        script.append(command)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(["set -x", *script])],
        cwd=place,
        env=environment(place),
        capture_output=True,
        text=True,
        timeout=300,
    )
    said = f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
    assert done.returncode == 0, f"{said}\nmake it run, or give it a row in commands.yaml"


def test_what_package_pages_install_is_in_the_release() -> None:
    """For EasyBuild, which builds on this machine; the command itself is read above."""
    lines = [one for one in shown() if re.match(r"\./mvstack install local \S+$", one)]
    known = {one.name.lower() for one in load_release().packages if one.where.builder != "spack"}
    assert len(lines) > 20 and {line.split()[3] for line in lines} <= known


def test_commands_of_a_page_are_read_as_a_shell_reads_them() -> None:
    text = "```sh\n# no\n$ one \\\n    --two  # three\nfour # five\n```\n\n```yaml\nsix: 6\n```\n"
    assert commands_of(text) == ["one --two", "four"]
