"""The test in the image (images/provision/smoke) over a real release: that it passes, and can fail.

The release and /etc are seen through overlays in memory, in a world of their own: what is broken
here is broken for the test alone.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from images.needs import needs
from images.provisioning import kit_folder
from images.release import TREE, installed
from images.world import World, processes

LIMIT = 20  # seconds, for those that hang; compiling must fit too
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]  # the first builds an MPI
_OVERLAYS = r"""
top=$1
shift
mount -t tmpfs -o mode=0755 smoke "$top"
for place in "$@"; do
    mine=$top/$(basename "$place")
    mkdir "$mine" "$mine/upper" "$mine/work"
    mount -t overlay -o "lowerdir=$place,upperdir=$mine/upper,workdir=$mine/work" smoke "$place"
done
"""
# As a wrong bootstrap does: every rank is a world of its own.
_SINGLETONS = """#!/bin/bash
shift
ranks=$1
shift
for ((i = 0; i < ranks; i++)); do "$@" || exit; done
"""
_HANGS = r"""
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    signal(SIGTERM, SIG_IGN);
    MPI_Init(&argc, &argv);
    puts("waits");
    fflush(stdout);
    for (;;)
        pause();
}
"""
_SAYS = r"""
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    puts("%s");
    MPI_Finalize();
    return %d;
}
"""


class Image:
    """A kit in ``world``, and the shells as the step 70-shells.sh makes them."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world = world
        self.kit = kit_folder(folder / "kit", ["70-shells.sh"], TREE)
        (folder / "top").mkdir()
        self.bash(_OVERLAYS, folder / "top", "/etc", TREE)
        self.bash('"$1/provision/run" && "$1/provision/run" --expect-unchanged', self.kit)

    @property
    def tree(self) -> Path:
        """The release as the world sees it, to be changed."""
        return Path(f"/proc/{self.world.init}/root{TREE}")

    def bash(self, script: str, *words: str | Path) -> None:
        code, said = self.world.run(["bash", "-euc", script, "image", *words])
        assert code == 0, said

    def program(self, name: str, text: str) -> None:
        """Let ``smoke`` compile another program of that name."""
        (self.kit / "tests" / name).write_text(text)

    def smoke(self, *ranks: str, **environment: str) -> tuple[int, str]:
        return self.world.run([self.kit / "provision/smoke", *ranks], **environment)

    def fails(self, words: str, **environment: str) -> str:
        """What it said; the first line of the failure must begin with ``words``."""
        code, said = self.smoke("2", **environment)
        assert code == 1, said
        assert f"FAILED: test in the image: {words}" in said
        assert "see each other" not in said
        return said


@pytest.fixture(scope="module")
def _release() -> Path:
    return installed()


@pytest.fixture
def image(tmp_path: Path, _release: Path) -> Iterator[Image]:
    needs()
    with World() as world:
        yield Image(world, tmp_path)


def test_a_release_that_is_right_passes(image: Image) -> None:
    # a library beside the MPI, in a tree whose own name has an MPI's in it, is no MPI
    for name in ("zlib/1.3.lua", "mpich/.hidden.lua"):
        place = next(image.tree.glob("modules/Compiler/gcc/*")) / name
        place.parent.mkdir(exist_ok=True)
        place.write_text('error("not to be loaded")\n')
    code, said = image.smoke()
    assert code == 0, said
    ranks = sorted({2, len(os.sched_getaffinity(0))} - {1})
    lines = said.splitlines()
    assert len(lines) == len(ranks)
    for count, line in zip(ranks, lines, strict=True):
        assert line.startswith("   mpich/") and "705 collectives are right" in line
        assert f": {count} ranks see each other" in line


def test_ranks_that_hang_are_ended_and_nothing_of_them_is_left(image: Image) -> None:
    before = processes(image.world.network())
    image.program("world.c", _HANGS)
    said = image.fails("mpich/", MVSTACK_SMOKE_LIMIT=str(LIMIT))
    assert f": 2 ranks did not end within {LIMIT} s\n" in said
    assert "    waits" in said  # what they said is shown, on one line or two
    while processes(image.world.network()) != before:  # the test's own limit ends this if they stay
        time.sleep(0.02)
    assert image.world.run(["bash", "-c", "ls -d /tmp/tmp.*/world"])[0] != 0


def test_ranks_that_are_worlds_of_their_own_fail(image: Image) -> None:
    (starter,) = image.tree.glob("software/MPICH/*/bin/mpiexec")
    starter.unlink()
    starter.write_text(_SINGLETONS)
    starter.chmod(0o755)
    said = image.fails("mpich/")
    assert "2 ranks were started, and 0 of them see a world of 2" in said
    assert said.count("    rank 0 of 1 sum 0 on ") == 2


@pytest.mark.parametrize(
    ("line", "seen"), [("rank 0 of 2 sum 1 on here", 1), ("rank 0 of 2 sum 0 on here", 0)]
)
def test_a_rank_that_is_there_twice_or_lacks_the_others_sum_fails(
    image: Image, line: str, seen: int
) -> None:
    image.program("world.c", _SAYS % (line, 0))
    assert f"2 ranks were started, and {seen} of them see" in image.fails("mpich/")


def test_a_release_without_its_launcher_fails(image: Image) -> None:
    (starter,) = image.tree.glob("software/MPICH/*/bin/mpiexec")
    starter.rename(starter.with_name("away"))
    (image.kit / "bin").mkdir()  # another MPI's mpiexec may be on this machine
    image.bash(_OVERLAYS, image.kit / "bin", "/usr/bin")
    image.bash("rm -f /usr/bin/mpiexec")
    assert ": 2 ranks ended with status 127\n" in image.fails("mpich/")


def launch(image: Image, line: str) -> None:
    """Let the image's plan start ranks by ``line``."""
    file = image.kit / "image/provision.env"
    file.write_text(file.read_text() + f"LAUNCH=('mpich/4.0.2-ofi {line} {{program}}')\n")


SLURM = pytest.mark.skipif(
    not all(shutil.which(one, path="/usr/sbin:/usr/bin") for one in ("slurmctld", "munged")),
    reason="no Slurm is installed",
)


@SLURM
def test_a_partition_of_slurm_is_tested_by_srun_and_nothing_of_it_stays(image: Image) -> None:
    launch(image, "srun --mpi=pmi2 -n {ranks}")
    before, left = processes(image.world.network()), set(Path("/tmp").glob("tmp.*"))
    code, said = image.smoke("2")
    assert code == 0, said
    assert "2 ranks see each other, 705 collectives are right, by srun" in said
    assert processes(image.world.network()) == before
    assert set(Path("/tmp").glob("tmp.*")) <= left


@SLURM
def test_slurm_starts_on_a_machine_whose_name_is_not_127_0_0_1(image: Image) -> None:
    launch(image, "srun --mpi=pmi2 -n {ranks}")
    named = r"""hostname boot; printf '127.0.0.1 localhost\n127.0.1.1 boot\n' >/etc/hosts
        exec "$1" 2"""
    script = ["unshare", "--uts", "bash", "-euc", named, "named", image.kit / "provision/smoke"]
    code, said = image.world.run(script)
    assert code == 0, said


@SLURM
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("srun --mpi=none -n {ranks}", "2 ranks were started, and 0 of them see a world of 2"),
        ("srun --mpi=wrong -n {ranks}", "2 ranks ended with status "),
    ],
)
def test_a_wrong_pmi_fails_and_nothing_of_slurm_stays(image: Image, line: str, words: str) -> None:
    launch(image, line)
    before = processes(image.world.network())
    assert words in image.fails("mpich/")
    assert processes(image.world.network()) == before


@SLURM
def test_a_slurm_that_does_not_start_is_told_with_its_own_words(image: Image) -> None:
    launch(image, "srun --mpi=pmi2 -n {ranks}")
    helper = image.kit / "provision/slurm.sh"
    helper.write_text(helper.read_text().replace("SlurmUser=root", "SlurmUser=nobody-there"))
    assert "nobody-there" in image.fails("a Slurm of one node does not start")


def test_a_collective_that_is_wrong_fails(image: Image) -> None:
    source = image.kit / "tests/collectives.c"
    right = source.read_text()
    wrong = right.replace(
        "MPI_Allreduce(in, out, count, type, MPI_SUM", "MPI_Allreduce(in, out, count, type, MPI_MAX"
    )
    assert wrong != right
    source.write_text(wrong)
    said = image.fails("mpich/")
    assert ": collectives at 2 ranks are wrong\n    wrong allreduce " in said


@pytest.mark.parametrize(
    ("line", "status", "words"),
    [
        ("", 0, "0 of 705 collectives at 2 ranks were right"),
        ("right bcast int 4", 0, "1 of 705 collectives at 2 ranks were right"),
        ("right bcast int 4", 3, "collectives at 2 ranks ended with status 3"),
    ],
)
def test_collectives_that_are_left_out_or_end_badly_fail(
    image: Image, line: str, status: int, words: str
) -> None:
    image.program("collectives.c", _SAYS % (line, status))
    assert f": {words}\n" in image.fails("mpich/")


def test_a_release_without_its_modules_fails(image: Image) -> None:
    image.bash('mv "$1/modules/Core" "$1/modules/away"', TREE)
    said = image.fails(f"the modules of release {TREE.parent.name} do not load in a login shell")
    assert "mvapich-stack" in said.split("\n", 1)[1]


def test_a_release_without_an_mpi_or_a_compiler_that_works_fails(image: Image) -> None:
    image.program("world.c", "#error no\n")
    assert "does not compile (ended with status 1)" in image.fails("mpicc of mpich/")
    image.bash('mv "$1"/Compiler/gcc/*/mpich "$1/away"', TREE / "modules")
    assert "mpich" in image.fails(f"the modules of release {TREE.parent.name} do not load")


_JOIN = """
ip link add lan netns "$1" type veth peer name lan netns "$2"
for host in "$1 10.9.0.1" "$2 10.9.0.2"; do
    nsenter --target="${host% *}" --net bash -euc '
        ip addr del 192.0.2.1/32 dev lo
        ip addr add "$1/24" dev lan
        ip link set lan up' lan "${host#* }"
done
"""
# A host name of its own, as a machine has, and the kit at the same place on both.
_NODE = r"""
number=$1 kit=$2 place=/tmp/mvstack-nodes
mkdir -p "$place"
mount -t tmpfs -o mode=0755 kit "$place"
mount -t tmpfs shm /dev/shm
cp -a "$kit/." "$place"
exec unshare --uts bash -euc '
    hostname "boot-$1"
    printf "127.0.0.1 localhost\\n127.0.1.1 boot-%s\\n" "$1" >/etc/hosts
    exec "$2/provision/smoke" --node "$1"' node "$number" "$place"
"""


@pytest.fixture
def pair(tmp_path: Path, _release: Path) -> Iterator[tuple[Image, Image]]:
    """Two hosts on one network, each with the release and Slurm."""
    needs()
    key = os.urandom(128)
    with World() as one, World() as two:
        pids = [str(world.init) for world in (one, two)]
        subprocess.run(["bash", "-euc", _JOIN, "join", *pids], check=True)
        images = []
        for number, world in enumerate((one, two), 1):
            (tmp_path / f"{number}").mkdir()
            image = Image(world, tmp_path / f"{number}")
            launch(image, "srun --mpi=pmi2 -n {ranks}")
            (image.kit / "nodes").write_text("boot-1 10.9.0.1\nboot-2 10.9.0.2\n")
            (image.kit / "munge.key").write_bytes(key)
            images.append(image)
        yield images[0], images[1]


def among(pair: tuple[Image, Image], **environment: str) -> tuple[int, str]:
    """The test's status and words on the first, while the second serves."""
    first, second = pair
    log = second.kit / "served"
    start = ["bash", "-euc", _NODE, "node"]
    path = {"PATH": os.environ["PATH"]}
    with log.open("wb") as stream:
        serving = second.world.popen([*start, "2", second.kit], path, stream)
        while "ready" not in log.read_text().splitlines():
            assert serving.poll() is None, log.read_text()
            time.sleep(0.1)
        code, said = first.world.run([*start, "1", first.kit], **environment)
        (Path(f"/proc/{second.world.init}/root") / "tmp/mvstack-nodes/end").touch()
        assert serving.wait(60) == 0, log.read_text()
    return code, said


@SLURM
def test_ranks_of_two_machines_see_each_other_over_the_planned_fabric(
    pair: tuple[Image, Image],
) -> None:
    before = [processes(image.world.network()) for image in pair]
    code, said = among(pair)
    assert code == 0, said
    assert "2 ranks see each other, 705 collectives are right, by srun on 2 machines" in said
    assert re.search("between machines: in use: .*tcp", said)
    assert [processes(image.world.network()) for image in pair] == before


@SLURM
def test_a_fabric_that_falls_back_to_tcp_fails(pair: tuple[Image, Image]) -> None:
    plan = pair[0].tree / "records/plan.json"
    given = json.loads(plan.read_text())
    given["mpi"][0]["believe"]["provider"] = ["efa"]
    plan.write_text(json.dumps(given))
    code, said = among(pair)
    assert code == 1 and "the messages between machines" in said, said
    assert "planned was efa" in said and "go over TCP: the kernel counted" in said


@SLURM
def test_a_machine_that_lets_the_others_not_in_fails(pair: tuple[Image, Image]) -> None:
    # as a security group does: only ssh comes in
    pair[1].bash("ip addr del 10.9.0.2/24 dev lan && ip addr add 10.9.0.2/24 dev lo")
    code, said = among(pair, MVSTACK_SMOKE_LIMIT="20")
    assert code == 1 and "a Slurm of 2 nodes does not start" in said, said
    assert re.search(r"boot-2 .*(unk|down)", said), "which node is not there"
