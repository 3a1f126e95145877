"""`mvstack adopt`: what a login node and a compute node say, put together as a system file."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from discover_roots import kept
from hypothesis import given, settings
from hypothesis import strategies as st

from mvstack.cli import adopt as command
from mvstack.discover import look, nodes
from mvstack.discover.machine import REQUIRED, Compiler, Library, Machine
from mvstack.discover.merge import JOBS, Kind, merged, partitions, unseen
from mvstack.discover.nodes import NO_MACHINE, by_hand, read
from mvstack.discover.scheduler import SILENT
from mvstack.discover.system_file import Nodes, cluster_yaml
from mvstack.model.load import load_policy, parse_system
from mvstack.model.yamlfile import parse_yaml
from mvstack.support.errors import InvalidInput, Missing, Refused
from mvstack.support.processes import Done

CAPTURES = Path(__file__).resolve().parents[1] / "data" / "discover"
HARDWARE = ("cores", "memory_gb", "target", "nic", "gpu", "gpus")
DAY = date(2026, 11, 23)


def some(*values: object) -> st.SearchStrategy:
    return st.sampled_from([None, *values])


LIBRARIES = st.builds(
    Library,
    name=st.just("ucx"),
    version=some("1.15.0", "1.16.0"),
    prefix=st.sampled_from(["/usr", "/opt/ucx"]),
    headers=st.booleans(),
    transports=st.sampled_from([[], ["rc_mlx5"], ["tcp"]]),
)
COMPILERS = st.builds(
    Compiler,
    name=st.just("gcc"),
    version=st.sampled_from(["8.5.0", "13.2.0"]),
    path=st.just("/usr/bin/gcc"),
)
PROGRAMS = LIBRARIES.map(lambda one: one.model_copy(update={"headers": False}))
MACHINES = st.builds(
    Machine,
    os=some("rocky8", "rocky9"),
    scheduler=some("none", "slurm"),
    launcher=some("hydra", "srun"),
    pmi=some("pmi2", "pmix"),
    cores=some(2, 128),
    memory_gb=some(8, 512),
    target=some("zen2", "zen4"),
    fabric=some("infiniband", "shm", "tcp"),
    nic=some("mlx5"),
    gpu=some("none", "nvidia"),
    gpus=some(0, 4),
    compiler=st.none() | COMPILERS,
    externals=st.lists(LIBRARIES, max_size=1),
    programs=st.lists(
        LIBRARIES.map(lambda one: one.model_copy(update={"headers": False})), max_size=1
    ),
    notes=st.lists(st.sampled_from(["a port is down", "a container"]), max_size=2, unique=True),
)


QUEUES = st.sampled_from(["all", "GPU", "gpu", "2x", "long-a"])
FEW = settings(max_examples=60, deadline=None)


@FEW
@given(MACHINES, MACHINES)
def test_hardware_is_the_nodes_alone_and_nothing_is_made_up(login: Machine, node: Machine) -> None:
    before = (login.model_dump(), node.model_dump())
    made = merged(login, node)
    assert (login.model_dump(), node.model_dump()) == before
    assert [getattr(made, one) for one in HARDWARE] == [getattr(node, one) for one in HARDWARE]
    for name in (*JOBS, "compiler", "os"):
        values = (getattr(login, name), getattr(node, name))
        assert getattr(made, name) in values
        if any(value is not None for value in values) and name != "os":
            assert getattr(made, name) is not None  # what one of them knows is not lost
    assert made.fabric == node.fabric or (node.fabric == "shm" and made.fabric == "tcp")
    assert not (made.fabric == "shm" and made.scheduler == "slurm")
    prefixes = {one.prefix for one in (*login.externals, *node.externals)}
    assert {one.prefix for one in made.externals} <= prefixes
    assert bool(made.externals) == bool(login.externals or node.externals)


@FEW
@given(MACHINES, MACHINES)
def test_what_differs_is_named(login: Machine, node: Machine) -> None:
    notes = " ".join(merged(login, node).notes)
    if node.os and login.os and node.os != login.os:
        assert node.os in notes and login.os in notes
    if node.compiler and login.compiler and node.compiler != login.compiler:
        assert login.compiler.version in notes and "the node's is taken" in notes
    near, far = {x.name: x for x in (*node.programs, *node.externals)}, login.externals
    for one in far:
        own = near.get(one.name)
        if own and own.version and one.version and own.version != one.version:
            assert own.version in notes and one.version in notes


@given(
    MACHINES,
    st.lists(
        st.tuples(st.sampled_from(["all", "GPU", "gpu", "2x", "long-a"]), MACHINES | st.none()),
        max_size=4,
    ),
)
def test_every_partition_is_in_the_file_or_said_to_be_like_another(
    login: Machine, nodes: list[tuple[str, Machine | None]]
) -> None:
    answers = {name: (node, "" if node else "it is down") for name, node in nodes}
    parts, alike = partitions(login, answers, {"all": [Kind(7, 2, 8)]})
    assert len(parts) + len(alike) == len(answers)
    text = cluster_yaml(login, parts or {"node": Nodes(login)}, "lab", "spack", DAY, "adopt")
    data = parse_yaml(text, Path("lab.yaml")).data
    assert list(data["partitions"]) == list(parts or ["node"])
    for key, one in parts.items():
        for name in REQUIRED:
            value = getattr(one.machine, name)
            told = data if name in ("os", "scheduler") else data["partitions"][key]
            if name == "compiler":
                assert (told["compiler"] is None) == (value is None)
            elif name not in ("os", "scheduler"):
                assert told[name] == value
    fields = [line for line in text.splitlines() if line.startswith("    ")]
    empty = [line for line in fields if line.split("#")[0].rstrip().endswith(":")]
    assert all("not found: fill in" in line for line in empty if "externals:" not in line)


def test_nodes_of_other_hardware_get_partitions_of_their_own() -> None:
    """Captures of three machines that were not this one: a login node and two kinds of nodes."""
    login = look(CAPTURES / "azure-hbv4.yaml")
    answers = {
        "compute": (look(CAPTURES / "azure-hbv4.yaml"), ""),
        "gpu": (look(CAPTURES / "gpu-v100.yaml"), ""),
        "debug": (look(CAPTURES / "azure-hbv4.yaml"), ""),
    }
    slurm = {one: [Kind(n, 8, 8)] for one, n in (("compute", 10), ("gpu", 2), ("debug", 1))}
    parts, alike = partitions(login, answers, slurm)
    assert list(parts) == ["compute", "gpu"] and "debug" in alike[0] and "compute" in alike[0]
    assert parts["compute"].machine.gpu == "none" and parts["gpu"].machine.gpu == "nvidia"
    assert parts["compute"].machine.target != parts["gpu"].machine.target
    assert (parts["compute"].count, parts["gpu"].count) == (10, 2)


def test_a_node_that_did_not_answer_is_an_error_of_check_with_what_to_do() -> None:
    login = look(CAPTURES / "azure-hbv4.yaml")
    parts, _ = partitions(
        login, {"gpu": (None, "srun: Requested nodes are busy")}, {"gpu": [Kind(2, 8, 8)]}
    )
    text = cluster_yaml(login, parts, "lab", "spack", DAY, "adopt")
    assert "# not found: fill in (srun: Requested nodes are busy)" in text
    with pytest.raises(InvalidInput) as caught:
        parse_system(text, Path("lab.yaml"))
    problems = {one.message.split(": ")[0]: one for one in caught.value.problems}
    assert {"cores", "target", "fabric"} <= set(problems)
    assert all("fill it in" in one.todo for one in problems.values())
    assert all(one.where.startswith("lab.yaml:") for one in problems.values())


def test_what_is_on_the_login_node_alone_is_said() -> None:
    ucx = Library(name="ucx", version="1.15.0", prefix="/usr", transports=["tcp"])
    here = ucx.model_copy(update={"headers": False, "transports": ["rc_mlx5"]})
    (own,) = merged(Machine(externals=[ucx]), Machine(programs=[here])).externals
    assert own.transports == ["rc_mlx5"] and own.headers and "login node alone" in own.told
    newer = here.model_copy(update={"version": "1.16.0", "prefix": "/opt/ucx"})
    made = merged(Machine(externals=[ucx]), Machine(programs=[newer]))
    assert "ucx: version 1.16.0, and 1.15.0 on the login node" in made.notes
    assert "ucx: prefix /opt/ucx, and /usr on the login node" in made.notes
    assert made.externals[0].prefix == "/usr" and made.externals[0].transports == ["tcp"]
    (own,) = merged(Machine(externals=[ucx]), Machine()).externals
    assert own.transports == ["tcp"] and "is it on these nodes too?" in own.told


def test_a_machine_is_the_same_after_its_json() -> None:
    machine = look(CAPTURES / "gpu-v100.yaml")
    assert read(machine.model_dump_json().encode()) == (machine, "")
    assert read(b'{"cores": "many"}')[0] is None
    assert "discover --json" in read(b"srun: prolog\n")[1]
    told = b"prolog: hello\n" + machine.model_dump_json(indent=1).encode()
    assert read(told) == (machine, "")
    assert read(b"{}") == (None, f"{NO_MACHINE}: no hostname")
    assert "no externals" in read(machine.model_dump_json(exclude={"externals"}).encode())[1]


def test_every_scheduler_has_a_line_for_a_person() -> None:
    queued = []
    for name, row in load_policy().schedulers.items():
        line = by_hand(row.look, "gpu", ["mvstack", "discover", "--json"])
        assert "mvstack discover --json > " in line and "gpu.json" in line
        queued += [name] if row.submit and re.search(r"(-q |-p |=)gpu\b", line) else []
    assert queued == ["slurm", "pbs", "torque", "lsf", "flux"]
    assert unseen("down").how["cores"] == "down"


def test_a_job_that_had_less_than_the_node_does_not_describe_it() -> None:
    """As Slurm's cgroups show a node to a job of one core, without its GPUs."""
    login = look(CAPTURES / "azure-hbv4.yaml")
    root = kept("azure-hbv4")
    group = "/system.slice/slurmstepd.scope/job_5"
    root.files["/proc/self/status"] = "Cpus_allowed_list:\t0\n"
    root.files["/proc/self/cgroup"] = f"0::{group}/step_0\n"
    root.files[f"/sys/fs/cgroup{group}/memory.max"] = f"{4 << 30}\n"
    node = look(root)
    assert (node.cores, node.memory_gb) == (1, 4)
    slurm = {"hb": [Kind(3, 176, 680), Kind(2, 352, 500, "gpu:a100:4")]}
    parts, _ = partitions(login, {"hb": (node, "")}, slurm)
    text = cluster_yaml(login, parts, "lab", "spack", DAY, "adopt")
    assert re.search(r" cores: 176 +# sinfo; the job that looked had 1\n", text)
    assert " memory_gb: 680 " in text and "cores says" not in text and " nodes: 5 " in text
    assert "nodes of 2 kinds: 3 with 176 cores, 680 GB; 2 with 352 cores, 500 GB gpu:a100:4" in text


Fake = Callable[..., list[list[str]]]


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Have sinfo list ``rows``, or print ``fails``, and every srun fail; what was run."""

    def fake(*rows: str, fails: str = "", late: bool = False) -> list[list[str]]:
        ran = []

        def ask(words: list[str], _: float = 0.0) -> Done:
            ran.append(words)
            if words[0] == "sinfo":
                lines = "".join(f"{one}\n" for one in rows)
                return Done(int(bool(fails)), lines.encode(), fails.encode(), late)
            return Done(1, b"", b"srun: error: busy\n")

        login = look(CAPTURES / "azure-hbv4.yaml").model_copy(update={"scheduler": "slurm"})
        monkeypatch.setattr(nodes, "ask", ask)
        monkeypatch.setattr(command, "look", lambda: login)
        monkeypatch.setattr(command, "site_folder", lambda to: to)
        monkeypatch.delenv("SLURM_JOB_ID", raising=False)
        (tmp_path / "a site").mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path)
        return ran

    return fake


def test_a_job_asks_for_all_of_a_node(slurm: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    ran = slurm("cpu|0|0|0|0|(null)", "gpu|2|2|64|257000|gpu:a100:4(S:0-1),shard:8")
    command.adopt("lab", Path("a site"), srun=["--account=abc", "--comment=x"])
    (asked,) = [words for words in ran if words[0] == "srun"]
    whole = ["--exclusive", "--mem=0", "--cpu-bind=none", "--gres=gpu:a100:4"]
    assert [one for one in asked if one in whole] == whole and "--all" not in ran[0]
    assert asked.index("--mem=0") < asked.index("--account=abc") < asked.index("--comment=x")
    said = capsys.readouterr().out
    line = "sbatch --partition=gpu --nodes=1 --exclusive --mem=0 --gres=gpu:a100:4 --account=abc -"
    assert line in said and "cpu: sinfo counts no nodes in it: left out" in said
    assert "mvstack adopt lab --to 'a site' --replace --node gpu=gpu.json" in said
    text = Path("a site/systems/lab.yaml").read_text()
    assert " nodes: 2 " in text and '["--partition=gpu", "--account=abc"]' in text


def test_slurm_that_does_not_answer_is_an_error(
    slurm: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm(fails="slurm_load_partitions: Socket timed out\n")
    with pytest.raises(Missing, match=r"partitions: slurm_load_partitions: Socket timed out\n"):
        command.adopt("lab", Path("a site"))
    slurm(late=True)
    with pytest.raises(Missing, match=r"no answer in 60 s\n.* --partition"):
        command.adopt("lab", Path("a site"))
    assert not Path("a site/systems").exists()
    ran = slurm(late=True)
    command.adopt("lab", Path("a site"), partition=["hidden"])  # it is asked itself
    assert "--all" in ran[0] and "--partition=hidden" in ran[1]
    assert "nodes: 1  " in Path("a site/systems/lab.yaml").read_text()
    slurm("cpu|0|0|0|0|(null)")
    command.adopt("empty", Path("a site"))  # and not the login node for a cluster
    assert "nodes: 1  " in (text := Path("a site/systems/empty.yaml").read_text())
    assert "not found: fill in (srun: error: busy)" in text
    slurm("cpu|2|2|64|257000|(null)")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    with pytest.raises(Refused, match="not in salloc"):
        command.adopt("other", Path("a site"))
    silent = Machine(scheduler="none", notes=[f"{SILENT} (no answer in 5 s): taken as no"])
    monkeypatch.setattr(command, "look", lambda: silent)
    with pytest.raises(Missing, match=r"^Slurm is installed .* \(no answer in 5 s\)\n"):
        command.adopt("other", Path("a site"))


def test_the_line_for_a_person_holds_in_a_folder_with_a_space(
    slurm: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm()
    monkeypatch.chdir("a site")
    words = shlex.split(shlex.split(by_hand("{line}", "gpu", ["mvstack"]))[0])
    assert words == ["mvstack", ">", str(Path.cwd() / "gpu.json")]
