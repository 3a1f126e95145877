"""What is known of a partition by its node and by the login node together. Pure.

Processor, memory, adapters and GPUs are the node's alone: a login node often has others. What
starts jobs is told where jobs are started. Compilers and libraries are the node's where it has
them.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mvstack.discover.machine import REQUIRED, Library, Machine
from mvstack.discover.system_file import Nodes

Answer = tuple[Machine | None, str]
"""What a node found; without one why there is nothing."""


class Kind(NamedTuple):
    """Nodes of a partition that Slurm says are alike; ``gpus`` as it is asked for them."""

    nodes: int
    cores: int
    memory_gb: int
    gpus: str = ""

    def __str__(self) -> str:
        return f"{self.nodes} with {self.cores} cores, {self.memory_gb} GB {self.gpus}".rstrip()


SAME = (
    *("os", "cores", "memory_gb", "target", "fabric", "nic"),
    *("gpu", "gpus", "gpu_arch", "gpu_buffers"),
)
JOBS = ("scheduler", "launcher", "pmi")
LISTS = ("providers", "transports", "mpi")


def unseen(why: str) -> Machine:
    """A node that did not tell of itself: every field is to be filled in, ``why`` says why."""
    return Machine(how=dict.fromkeys((*REQUIRED, "file_systems"), why))


def merged(login: Machine, node: Machine) -> Machine:
    """``node`` with what the login node alone knows; ``notes`` name what differs."""
    made = node.model_copy(deep=True)
    made.notes = [note for note in node.notes if note not in login.notes]
    for name in JOBS:
        told = getattr(login, name)
        if told is not None and (told != "none" or getattr(node, name) is None):
            made.found(name, _there(login, name), told)
    if node.os and login.os and node.os != login.os:
        made.note(f"os {node.os}, and {login.os} on the login node: build on a node of this kind")
    here, there = node.compiler, login.compiler
    if here is None and there is not None:
        made.found("compiler", _there(login, "compiler"), there.model_copy())
    elif here and there and (here.name, here.version) != (there.name, there.version):
        both = f"{here.name} {here.version}, and {there.name} {there.version} on the login node"
        made.note(f"compiler {both}: the node's is taken")
    if made.fabric == "shm" and made.scheduler not in (None, "none"):
        how = f"no active network adapter for MPI; scheduler {made.scheduler}: nodes over TCP"
        made.found("fabric", how, "tcp")
    made.externals = _externals(login, made)
    return made


def _there(login: Machine, name: str) -> str:
    return f"on the login node: {login.how.get(name, '')}"


def _externals(login: Machine, made: Machine) -> list[Library]:
    """The packages of both: what the node's has where both have one, and what differs as notes."""
    near = {one.name: one for one in (*made.programs, *made.externals)}
    far = {one.name: one for one in login.externals}
    names = dict.fromkeys([*far, *(one.name for one in made.externals)])
    return [_library(near.get(name), far.get(name), made) for name in names]


def _library(near: Library | None, far: Library | None, made: Machine) -> Library:
    if near is None or far is None:
        only = near or far
        assert only
        told = "" if near else "seen on the login node alone: is it on these nodes too?"
        return only.model_copy(update={"told": told})
    name = near.name
    for field in ("version", "prefix"):
        here, there = getattr(near, field), getattr(far, field)
        if here and there and here != there:
            made.note(f"{name}: {field} {here}, and {there} on the login node")
    if near.headers or near.prefix != far.prefix:
        return near if near.headers else far.model_copy(update={"told": "no headers on the nodes"})
    own = {one: getattr(near, one) or getattr(far, one) for one in (*LISTS, "version")}
    told = "its headers are on the login node alone" if far.headers else ""
    return far.model_copy(update={**own, "idle": near.idle, "told": told})


def _whole(made: Machine, kinds: Sequence[Kind]) -> None:
    """Have ``made`` say what all of a node has, by Slurm, where the job that looked had less."""
    for name, there in made.whole.items():
        had = getattr(made, name)
        said = min(there, max((getattr(one, name) for one in kinds), default=0))
        if had is not None and said > had:
            made.found(name, f"sinfo; the job that looked had {had}", said)
            made.notes = [one for one in made.notes if not one.endswith(f"{name} says {had}")]
    if len(kinds) > 1:
        made.note(f"nodes of {len(kinds)} kinds: {'; '.join(map(str, kinds))}: this is one of them")


def partitions(
    login: Machine,
    answers: Mapping[str, Answer],
    slurm: Mapping[str, Sequence[Kind]],
    options: Sequence[str] = (),
) -> tuple[dict[str, Nodes], list[str]]:
    """The partitions by their names in a file; and a line for each that is like an earlier one.

    ``slurm`` says which nodes its partitions have, ``options`` are those of every job on them.
    """
    parts: dict[str, Nodes] = {}
    alike: list[str] = []
    for queue, (machine, why) in answers.items():
        key = re.sub(r"[^a-z0-9_-]+", "-", queue.lower()).strip("-_")
        key = key if key[:1].isalpha() else f"p{key}"
        key += f"-{len(parts)}" * (key in parts)
        made, kinds = merged(login, machine or unseen(why)), slurm.get(queue, ())
        _whole(made, kinds)
        facts = [getattr(made, name) for name in SAME]
        for other, nodes in parts.items():
            if machine and facts == [getattr(nodes.machine, name) for name in SAME]:
                alike.append(f"{queue}: its nodes are like those of {other}: left out")
                break
        else:
            count = sum(one.nodes for one in kinds)
            counted = "sinfo" if count else "how many there are is not known"
            own = (f"--partition={queue}", *options) if login.scheduler == "slurm" else ()
            parts[key] = Nodes(made, count or 1, counted, own, tuple(made.notes))
    return parts, alike
