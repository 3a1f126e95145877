"""`mvstack adopt`: from a login node to the file of a cluster, in one command."""

import os
import re
import shlex
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from mvstack.cli import options
from mvstack.cli.discover import BuilderName
from mvstack.cli.new import Below, site_folder, valid
from mvstack.discover import look
from mvstack.discover.merge import Answer, partitions
from mvstack.discover.nodes import by_hand, by_srun, read, slurm_partitions
from mvstack.discover.scheduler import SILENT
from mvstack.discover.system_file import Nodes, cluster_yaml
from mvstack.model.load import load_policy
from mvstack.model.text import Name
from mvstack.support.console import confirm, say
from mvstack.support.errors import InvalidInput, Missing, Refused, relative
from mvstack.support.files import open_regular, write_atomically

app = options.commands()
DISCOVER = [sys.executable, "-P", "-m", "mvstack", "discover", "--json"]
OF_EVERY_JOB = re.compile(r"(--(account|qos|reservation)=|-[Aq]\w).*")


@app.command(
    epilog="Examples: mvstack adopt mycluster --to our-site   ·   "
    "mvstack adopt mycluster --to our-site --node gpu=gpu.json"
)
def adopt(
    name: Annotated[str, Argument(metavar="NAME", help="Name of the system.")],
    to: Below = None,
    partition: Annotated[
        list[str] | None, Option(help="Partition of Slurm's to look at (repeatable); else all.")
    ] = None,
    node: Annotated[
        list[str] | None,
        Option(
            metavar="PARTITION=FILE",
            help="What `discover --json` printed on a node of a partition, or a capture "
            "(repeatable).",
        ),
    ] = None,
    srun: Annotated[
        list[str] | None, Option(help="Option for srun, e.g. --account=abc (repeatable).")
    ] = None,
    limit: Annotated[int, Option(min=1, help="Seconds to wait for a node of a partition.")] = 60,
    builder: BuilderName = "easybuild",
    replace: Annotated[bool, Option("--replace", help="Replace the file if it is there.")] = False,
    as_json: options.Json = False,
) -> None:
    """Describe this cluster, from a login node, in a system file; say what it could not find."""
    valid("NAME", Name, name)
    given = dict(map(_given, node or []))
    file = site_folder(to) / "systems" / f"{name}.yaml"
    if file.exists() and not (replace or (sys.stdin.isatty() and confirm(f"Replace {file}?"))):
        todo = "give another name or --replace"
        raise Refused("exists already", relative(file), todo=todo, outcome="Nothing was written.")
    shown = options.progress(as_json)
    with shown.step("look", "at this node"):
        login = look()
    if silent := [one for one in login.notes if one.startswith(SILENT) and not given]:
        todo = "run it again; `mvstack discover` describes this node alone"
        raise Missing(silent[0].partition(": taken")[0], todo=todo)
    slurm = slurm_partitions(partition or []) if login.scheduler == "slurm" else {}
    if unknown := [one for one in partition or [] if slurm and one not in slurm]:
        what, allowed = f"Slurm has no partition {unknown[0]}", ", ".join(slurm)
        raise InvalidInput(what, "--partition", allowed=allowed)
    empty = [one for one, kinds in slurm.items() if kinds and not any(x.nodes for x in kinds)]
    looked_at = partition or [one for one in slurm if one not in empty] or slurm
    queues = dict.fromkeys([*looked_at, *given])
    asked = [one for one in queues if slurm and one not in given]
    if asked and "SLURM_JOB_ID" in os.environ:  # srun would look at this job's node each time
        raise Refused("this is within a job of Slurm", todo="run it on a login node, not in salloc")
    # to have all of a node is not to have its GPUs: a job has those that it asks for
    gpus = {x: [f"--gres={k.gpus}" for k in slurm.get(x, []) if k.gpus][:1] for x in queues}
    ask = partial(by_srun, command=DISCOVER, limit=limit)
    more = [[*gpus[one], *(srun or [])] for one in asked]
    told = given
    if asked:  # side by side: one that is down is waited for once
        what = f"at a node of {', '.join(asked)}"
        with shown.step("look", what), ThreadPoolExecutor(max_workers=8) as pool:
            told = {**dict(zip(asked, pool.map(ask, asked, more), strict=True)), **given}
    answers = {one: told.get(one, (None, "no Slurm here to ask")) for one in queues}
    kept = [one for one in srun or [] if OF_EVERY_JOB.fullmatch(one)]
    parts, alike = partitions(login, answers, slurm, kept)
    parts = parts or {"node": Nodes(login)}
    write_atomically(file, cluster_yaml(login, parts, name, builder, command="adopt"), mode=None)
    to_fill_in = {
        key: [one.message.partition(" ")[0] for one in nodes.machine.problems()]
        for key, nodes in parts.items()
    }
    folder = shlex.quote(relative(file.parents[1]))
    lost = {one: why for one, (machine, why) in answers.items() if machine is None}
    lines = [f"wrote {relative(file)}", *alike]
    lines += [f"{one}: sinfo counts no nodes in it: left out" for one in empty if one not in queues]
    lines += [f"{key}: to fill in: {', '.join(x)}" for key, x in to_fill_in.items() if x]
    lines += [f"{one}: {why}" for one, why in lost.items()]
    if lost:
        lines.append("to look at the nodes that did not answer, run these, then the last line:")
        look_there = load_policy().schedulers[login.scheduler or "none"].look
        lines += [f"    {by_hand(look_there, one, DISCOVER, [*gpus[one], *kept])}" for one in lost]
        again = " ".join(f"--node {one}={one}.json" for one in lost)
        lines.append(f"    mvstack adopt {name} --to {folder} --replace {again}")
    next_ = f"mvstack --site {folder} check {name}"
    data = {"file": str(file), "partitions": list(parts), "to_fill_in": to_fill_in}
    data |= {"did_not_answer": lost, "next": next_}
    say(data, as_json, *lines, f"next: edit it, then {next_}")


def _given(word: str) -> tuple[str, Answer]:
    """A partition and what a file says of its node. Raises InvalidInput."""
    queue, sign, path = word.partition("=")
    if not (queue and sign and path):
        allowed = "PARTITION=FILE, such as gpu=gpu.json"
        raise InvalidInput("no partition and file", "--node", found=word, allowed=allowed)
    with open_regular(Path(path)) as stream:
        text = stream.read()
    answer = read(text) if text.lstrip().startswith(b"{") else (look(Path(path)), "")
    if answer[0] is None:
        todo = "run `mvstack discover --json` on a node, with this version of mvstack"
        raise InvalidInput(answer[1], path, todo=todo)
    return queue, answer
