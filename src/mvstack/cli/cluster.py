"""Start a cluster from an image: QEMU on this machine, or files for AWS and Azure."""

import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from mvstack.cli import options
from mvstack.cli.image import Images, Size, Version
from mvstack.image import store, testing, virtual
from mvstack.image.cluster import Cluster, Place, cluster_files, make_cluster
from mvstack.image.flow import Asked
from mvstack.support.console import say
from mvstack.support.errors import CheckFailed, InvalidInput
from mvstack.support.files import write_atomically

app = options.commands(__doc__)
Nodes = Annotated[int, Option("--nodes", "-N", help="Number of nodes.")]


def _cluster(asked: Asked, nodes: int, place: Place) -> tuple[Cluster, str]:
    """The cluster, and the install root of its release."""
    plan, image = asked.plan("cluster")
    return make_cluster(f"{plan.system}/{plan.partition}", image, nodes, place), plan.root


@app.command(epilog="Example: mvstack cluster plan azure-hbv4/hpc --nodes 16")
def plan(
    system: options.Partition,
    nodes: Nodes = 2,
    size: Size = "",
    release: options.ReleaseName = None,
    as_json: options.Json = False,
) -> None:
    """Show which machines a cluster has and how ranks are started in it."""
    cluster, _ = _cluster(Asked(system, release, size=size), nodes, Place())
    image = cluster.image
    head = "node-1, which computes too" if image.cloud == "qemu" else cluster.head_machine
    ranks = nodes * int(image.hardware["cores"])
    rows = {
        "cluster": cluster.of,
        "cloud": image.cloud,
        "image": f"{image.name}, release {image.release}, {image.os}",
        "head": head,
        "nodes": f"{nodes} of {image.machine}, {image.hardware['fabric']}",
        "ranks": str(ranks),
        "scheduler": "slurm",
        "launch": image.launch[0]["launch"].replace("{ranks}", "N").replace("{program}", "./a.out"),
        "start": cluster.start,
    }
    say(rows, as_json, *(f"{name:<10} {value}" for name, value in rows.items()))


@app.command(
    epilog="Example: mvstack cluster render aws-hpc6a/hpc --nodes 8 --to mycluster "
    "--image ami-0123456789abcdef0 --region us-east-2 --subnet subnet-0123456789abcdef0 "
    "--key-name mykey"
)
def render(
    system: options.Partition,
    to: Annotated[Path, Option(metavar="DIR", help="New folder to write.")],
    nodes: Nodes = 2,
    image: Annotated[str, Option(help="Id of the image in its cloud (AMI, gallery version).")] = "",
    region: Annotated[str, Option(help="AWS region.")] = "",
    subnet: Annotated[str, Option(help="AWS subnet of head and nodes.")] = "",
    key_name: Annotated[str, Option("--key-name", help="AWS key pair that logs in.")] = "",
    size: Size = "",
    release: options.ReleaseName = None,
    as_json: options.Json = False,
) -> None:
    """Write what starts the cluster and its first job. Its README.md says how."""
    place = Place(image, region, subnet, key_name)
    cluster, _ = _cluster(Asked(system, release, size=size), nodes, place)
    files = cluster_files(cluster)
    if to.exists():
        raise InvalidInput("this folder is there already", str(to), todo="name a new one: --to DIR")
    for name, text in files.items():
        write_atomically(to / name, text)
    say({"folder": str(to), "files": list(files)}, as_json, *(f"{to / name}" for name in files))


@app.command(
    epilog="Examples: mvstack cluster run qemu-debian12/cluster --nodes 2   ·   "
    "mvstack cluster run qemu-debian12/cluster sinfo   ·   "
    "mvstack cluster run qemu-debian12/cluster --shell"
)
def run(
    system: options.Partition,
    words: Annotated[
        list[str] | None,
        Argument(metavar="[COMMAND]…", help="Command to run on the head; else the first job."),
    ] = None,
    nodes: Nodes = 2,
    shell: Annotated[bool, Option("--shell", help="Log in on the head; leave to stop it.")] = False,
    version: Version = None,
    release: options.ReleaseName = None,
    root: options.Root = None,
    images: Images = None,
) -> None:
    """Start virtual machines of a QEMU image here, run a job by their Slurm, and stop them."""
    asked = Asked(system, release, root, images)
    cluster, there = _cluster(asked, nodes, Place())
    virtual.can_run(cluster)
    folder = asked.folder(there)
    states = ("tested", "published", "candidate")
    found = store.find(folder, cluster.image.name, version, states, release or "")
    disk = testing.whole(found)
    use = virtual.first_job(cluster, print)
    if words or shell:
        use = virtual.command(words or (), print)
    work = folder / "clusters" / cluster.image.name
    status = virtual.run_cluster(cluster, disk, work, use, options.progress(False))
    if status and not (words or shell):
        raise CheckFailed("the first job failed", cluster.of, found=f"status {status}")
    sys.exit(status)
