"""What a site's folder may hold that is wrong: each is told, with its file, and nothing is lost."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from said import Mvstack

from mvstack.cli.fabric import _captured
from mvstack.support.errors import InvalidInput

REFERENCE = {
    "partition": "cpu",
    "mpi": "mvapich/4.0-ucx",
    "figure": "latency",
    "size": "8",
    "value": "1.2",
    "unit": "us",
    "below": "null",
    "above": "0.15",
    "source": "a run",
}


def site(folder: Path, **files: str) -> Path:
    """A site's folder; of each file the name, with ``__`` for a slash, and the text."""
    for name, text in files.items():
        path = folder / "site" / f"{name.replace('__', '/').replace('_', '.')}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "site"


def release(name: str) -> str:
    return f'name: "{name}"\nextends: "2026.11"\nstatus: development\n'


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("2027.01", release("2026.11"), "a release's file is called after the release"),
        ("2027.01", 'name: "2027.01"\nstatus: development\nmpi: {}\n', "no version of any MPI"),
        ("2027.13", release("2027.13"), "a year and month, such as 2026.11, is expected"),
    ],
)
def test_a_release_that_would_hide_another(
    mvstack: Mvstack,
    tmp_path: Path,
    name: str,
    text: str,
    says: str,
) -> None:
    top = site(tmp_path, **{f"releases__{name.replace('.', '_')}": text})
    said = mvstack("--site", top, "list", "packages", "--release", name)
    assert said.code == 3 and says in said.err and f"{name}.yaml:" in said.err


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"partition": "nosuch"}, "system expanse has no partition nosuch"),
        ({"value": "-3"}, "greater than 0"),
        ({"size": "-1"}, "greater than or equal to 0"),
        ({"above": "x"}, "above"),
        ({"source": '""'}, "source"),
        ({"colour": "blue"}, "colour"),
    ],
)
def test_a_reference_that_could_not_judge(
    mvstack: Mvstack,
    tmp_path: Path,
    change: dict[str, str],
    says: str,
) -> None:
    """One that names no partition, or no figure, left every result unjudged."""
    row = ", ".join(f"{key}: {value}" for key, value in (REFERENCE | change).items())
    top = site(tmp_path, references__expanse=f"- {{{row}}}\n")
    said = mvstack("--site", top, "check")
    assert said.code == 3 and says in said.err and "references/expanse.yaml:1" in said.err


def test_a_reference_that_judges_and_one_of_no_system(mvstack: Mvstack, tmp_path: Path) -> None:
    row = ", ".join(f"{key}: {value}" for key, value in REFERENCE.items())
    top = site(tmp_path, references__expanse=f"- {{{row}}}\n")
    assert mvstack("--site", top, "check").code == 0
    (top / "references" / "expanze.yaml").write_text(f"- {{{row}}}\n")
    said = mvstack("--site", top, "check")
    assert said.code == 3 and "there is no system expanze" in said.err
    (top / "references" / "expanze.yaml").write_text("a: 1\n")
    assert mvstack("--site", top, "check").code == 3


def test_a_check_that_would_never_run(mvstack: Mvstack, tmp_path: Path) -> None:
    top = site(tmp_path, systems__README="")
    (top / "systems" / "README.yaml").unlink()
    assert mvstack("--site", top, "new", "check", "Lamps").code == 0
    said = mvstack("--site", top, "check")
    assert said.code == 0 and "no release has a package Lamps" in said.err


@pytest.mark.parametrize("kind", ["file", "unreadable"])
def test_a_folder_that_cannot_be_read(
    mvstack: Mvstack,
    tmp_path: Path,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its systems were left out, and nobody was told."""
    top = site(tmp_path, policy__tuning="")
    if kind == "file":
        (top / "systems").touch()
    else:
        (top / "systems").mkdir()
        real = os.access  # root can read everything
        monkeypatch.setattr(
            os, "access", lambda path, mode: Path(path) != top / "systems" and real(path, mode)
        )
    said = mvstack("--site", top, "list", "systems")
    assert said.code == 3 and f"{top}/systems" in said.err


def test_a_hint_names_the_site(mvstack: Mvstack, tmp_path: Path) -> None:
    top = tmp_path / "our site"
    said = mvstack("new", "site", top)
    assert f"--site '{top}' new system" in said.out + said.err
    said = mvstack("--site", top, "test", "expanse/cpu")
    assert said.code == 4 and f"mvstack --site '{top}' install expanse/cpu" in said.err


def test_a_form_that_nobody_filled_in_is_told(mvstack: Mvstack, tmp_path: Path) -> None:
    top = tmp_path / "site"
    mvstack("new", "site", top)
    mvstack("--site", top, "new", "system", "mine")
    said = mvstack("--site", top, "check", "mine")
    assert said.code == 0
    told = re.findall(r"^warning: .*mine.yaml:\d+: (\w+): not filled in yet", said.err, re.M)
    assert told == ["title", "site", "source"]


def test_show_says_where_it_would_be_below_the_root_that_is_named(mvstack: Mvstack) -> None:
    said = mvstack("show", "expanse/cpu", "--root", "/zz")
    assert "/zz/2026.11" in said.out and "/cm/shared/apps" not in said.out


def test_what_is_quoted_steers_no_terminal(mvstack: Mvstack, tmp_path: Path) -> None:
    top = site(tmp_path, systems__odd='name: odd\ntitle: "a\\u202Eb"\n')
    said = mvstack("--site", top, "check", "odd")
    assert said.code == 3 and "\u202e" not in said.err


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("scheduler: slurm", "scheduler: pbs", "launcher srun starts programs in jobs of slurm"),
        ("hcas: [mlx5_0, mlx5_1]", "hcas: [mlx5_0, mlx5_0]", "each adapter is named once"),
    ],
)  # fmt: skip
def test_a_machine_that_contradicts_itself(
    mvstack: Mvstack,
    tmp_path: Path,
    old: str,
    new: str,
    says: str,
) -> None:
    text = (
        Path(__file__).parents[2].joinpath("environments/systems/roce-dual-rail.yaml").read_text()
    )
    assert old in text
    file = tmp_path / "roce-dual-rail.yaml"
    file.write_text(text.replace(old, new, 1))
    said = mvstack("check", file)
    assert said.code == 3 and says in said.err


def test_an_empty_file_is_no_source(mvstack: Mvstack, tmp_path: Path) -> None:
    (tmp_path / "e.tgz").touch()
    words = ["--accept-hash", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"]
    said = mvstack(
        "sources", "add", tmp_path / "e.tgz", "--as", "mvapich@4.0", *words, "--reason", "x"
    )
    assert said.code == 3 and "this file is empty" in said.err


def test_an_external_without_a_version_is_warned_of(mvstack: Mvstack, tmp_path: Path) -> None:
    """`discover` leaves Slurm's open where no controller answers, and Spack would build its own."""
    folder = Path(__file__).parents[2] / "environments" / "systems"
    text = (folder / "expanse.yaml").read_text()
    file = tmp_path / "expanse.yaml"
    file.write_text(re.sub(r"(slurm: \{)version: [^,]+, ", r"\1", text))
    assert file.read_text() != text
    said = mvstack("check", file)
    assert said.code == 0 and "slurm has no version" in said.err


def test_a_capture_of_a_fabric_in_which_nothing_is(mvstack: Mvstack, tmp_path: Path) -> None:
    (tmp_path / "ibnetdiscover").touch()
    said = mvstack("fabric", "check", "comet", "--from", tmp_path)
    assert said.code == 3 and "names no device" in said.err and str(tmp_path) in said.err
    said = mvstack("fabric", "check", "comet", "--from", tmp_path, "--json", "--metrics", "-")
    assert said.code == 3 and "only one of them" in json.loads(said.out)["problems"][0]["message"]


def test_a_capture_without_jobs(tmp_path: Path) -> None:
    """`--jobs` was left alone where the capture had none, and nobody was told."""
    with pytest.raises(InvalidInput, match="no list of jobs"):
        _captured(tmp_path, "squeue")


@pytest.mark.parametrize("stated", ["+cma+rdmacm", "+cma+rdmacm+thread_multiple"])
def test_an_external_that_spack_would_not_use_is_warned_of(
    mvstack: Mvstack, tmp_path: Path, stated: str
) -> None:
    """Without ucx_info `discover` cannot see all variants, and Spack found nothing that fits."""
    (tmp_path / "mine.yaml").write_text(
        "name: mine\nbuilder: spack\nos: debian12\npartitions:\n  node:\n    cores: 2\n"
        "    memory_gb: 4\n    target: x86_64_v3\n    fabric: shm\n    launcher: hydra\n"
        '    compiler: {version: "12.2.0"}\n    externals:\n'
        f'      ucx: {{version: "1.13.1", prefix: /usr, variants: "{stated}"}}\n'
    )
    said = mvstack("check", tmp_path / "mine.yaml")
    warned = "the ucx here does not state +thread_multiple" in said.err
    assert said.code == 0 and warned == (stated == "+cma+rdmacm")
