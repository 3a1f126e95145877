"""Lmod from source, as who has no root and no Lmod gets it: built, used, broken on purpose."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mvstack.builders.following import inherited
from mvstack.discover.machine import Machine
from mvstack.install import flow, lmod, local, stages
from mvstack.install.prerequisites import Lacking
from mvstack.model.load import load_system, parse_system
from mvstack.model.prerequisites import Family, Needed
from mvstack.render.templates import template
from mvstack.support.errors import BuildFailed, Missing, SourceError
from mvstack.support.progress import Progress
from mvstack.tree import modules

pytestmark = pytest.mark.slow
QUIET = Progress(mode="quiet")


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine whose distribution has the Lmod of Debian 11, which is too old."""
    old = tmp_path / "lmod"
    old.write_text("#!/bin/sh\necho 'Modules based on Lua: Version 6.6  2016-10-13' >&2\n")
    old.chmod(0o755)
    monkeypatch.delenv("LMOD_CMD", raising=False)
    monkeypatch.setattr(modules, "DISTRIBUTIONS_LMOD", str(old))


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root whose mirror has the sources."""
    root = tmp_path_factory.mktemp("mirror")
    fetcher = stages.fetcher_for(str(root))
    try:
        for spec in lmod.specs():
            fetcher.fetch(spec)
    except SourceError as error:
        pytest.skip(f"unreachable: {error.problems[0].message}")
    return root


def test_it_loads_modules_and_is_built_once(without: None, mirror: Path) -> None:
    assert not modules.lmod_here(mirror)
    fetcher = stages.fetcher_for(str(mirror))
    lmod.build_lmod(mirror, "022", fetcher, QUIET)
    command = Path(modules.lmod_command(mirror))
    assert command.is_relative_to(mirror)
    core = mirror / "modules" / "one"
    core.mkdir(parents=True)
    (core / "1.0.lua").write_text('help("a module")\nsetenv("ONE", os.getenv("HOME") .. "/1")\n')
    lines = (
        f"source {command.parents[1]}/init/bash; module use {core.parent}; module load one; "
        "module list 2>&1; echo $ONE; module unload one; echo left=$ONE"
    )
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/h", "LC_ALL": "C"}
    said = subprocess.run(
        ["bash", "-c", lines], env=environment, capture_output=True, text=True, check=True
    )
    assert "one/1.0" in said.stdout and "/h/1\nleft=\n" in said.stdout, said
    before = command.stat().st_mtime_ns
    lmod.build_lmod(mirror, "022", fetcher, QUIET)
    assert command.stat().st_mtime_ns == before
    (command.parents[2] / "lmod").unlink()
    assert not modules.lmod_here(mirror), "half of one is none"


def test_without_a_compiler_there_is_none_and_the_log_says_why(
    without: None, mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "tar", "gzip", "sed", "dirname", "make", "uname"):
        (tools / name).symlink_to(f"/usr/bin/{name}")
    monkeypatch.setenv("PATH", str(tools))
    with pytest.raises(BuildFailed, match="gcc: No such file") as caught:
        lmod.build_lmod(tmp_path / "root", "022", stages.fetcher_for(str(mirror)), QUIET)
    assert not modules.lmod_here(tmp_path / "root")
    assert Path(caught.value.problems[0].where).read_text()


def _prepared(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *needed: Needed, uid: int = 1000, **here: str
) -> list[str]:
    """What is built where these packages are lacking; raises what is refused."""
    built: list[str] = []
    family = Family(like=["debian"], update="true", install="true", present="true {package}")
    monkeypatch.setattr(flow, "lacking", lambda *_: Lacking(list(needed), family))
    monkeypatch.setattr(flow, "build_lmod", lambda root, *_: built.append(str(root)))
    monkeypatch.setattr(flow, "look", lambda: Machine(os="debian12", fabric=here.get("fabric")))
    monkeypatch.setattr("os.geteuid", lambda: uid)
    system = load_system(here.get("system", "local"))
    flow._prepare(system, flow.Request(system.name, root=tmp_path), "default", QUIET)
    return built


ANYWHERE = Needed(package="a", why="w", without="b is taken")
PLANNED = Needed(package="p", why="w", without="q is planned", planned=True)
NEVER = Needed(package="c", why="w")


@pytest.mark.parametrize(
    ("needed", "here", "refused"),
    [
        ([ANYWHERE], {"fabric": "infiniband"}, ""),
        ([ANYWHERE], {"system": "expanse"}, ""),
        ([ANYWHERE, PLANNED], {"fabric": "shm"}, ""),
        ([ANYWHERE, PLANNED], {"fabric": "infiniband"}, "a (w), p (w)"),
        ([PLANNED], {"fabric": "shm", "system": "expanse"}, "p (w)"),
        ([NEVER, PLANNED], {"fabric": "shm"}, "c (w), p (w)"),
    ],
)
def test_who_is_not_root_does_without_what_can_be_done_without(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    needed: list[Needed],
    here: dict[str, str],
    refused: str,
) -> None:
    if not refused:
        assert _prepared(monkeypatch, tmp_path, *needed, **here) == [str(tmp_path)]
        return
    with pytest.raises(Missing) as caught:
        _prepared(monkeypatch, tmp_path, *needed, **here)
    assert caught.value.problems[0].found == f"missing: {refused}"


def test_root_gets_all_of_it_from_the_distribution(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(Missing) as caught:
        _prepared(monkeypatch, tmp_path, ANYWHERE, uid=0, fabric="shm")
    assert caught.value.problems[0].found == "missing: a (w)"


@pytest.mark.parametrize(
    ("fabric", "there", "device", "embedded", "without"),
    [
        ("shm", "", "ch4:ofi", ["libfabric", "hwloc"], {"HPCC"}),
        ("shm", "libfabric hwloc openblas", "ch4:ofi", [], set()),
        ("shm", "ucx hwloc", None, ["libfabric"], {"HPCC"}),
        ("shm", "ucx libfabric hwloc", None, [], {"HPCC"}),
        ("tcp", "ucx hwloc openblas", None, ["libfabric"], set()),
        ("tcp", "ucx libfabric hwloc openblas", None, [], set()),
    ],
)
def test_the_plan_of_who_is_not_root_takes_what_is_there(
    fabric: str, there: str, device: str | None, embedded: list[str], without: set[str]
) -> None:
    text = (
        "name: mine\nos: rocky9\npartitions:\n  node:\n    cores: 2\n    memory_gb: 4\n"
        f"    target: x86_64_v3\n    fabric: {fabric}\n    launcher: hydra\n"
        '    compiler: {version: "12.2.0"}\n'
    )
    found = parse_system(text, Path("mine.yaml")).partitions["node"]
    part = local.without_root(found, set(there.split()))
    assert part.mpi.device == device
    assert [one for one in ("libfabric", "hwloc") if getattr(part.mpi, one)] == embedded
    assert part.without.keys() == without


def test_a_module_of_tcls_is_replaced_by_lmods(tmp_path: Path) -> None:
    text = template("init.bash", tree=tmp_path, lmod=tmp_path)
    (tmp_path / "init").mkdir()
    (tmp_path / "init" / "bash").write_text("module() { echo Lmod: $*; }\n")
    lines = f"module() {{ echo Tcl: $*; }}\n{text}"
    said = subprocess.run(
        ["bash", "-c", lines], env={"PATH": "/usr/bin"}, capture_output=True, text=True, check=True
    )
    assert said.stdout == f"Lmod: use {tmp_path}/modules/Core\n"


def test_a_builder_gets_no_function_of_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BASH_FUNC_module%%", "() { echo Tcl; }")
    assert not [one for one in inherited() if one.startswith("BASH_FUNC_")]
