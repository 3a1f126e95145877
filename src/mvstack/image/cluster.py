"""A cluster of machines of one image: the files that it is started from. Pure."""

import io
import re
from dataclasses import dataclass

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString

from mvstack.image.kit import programs
from mvstack.image.packer import TEMPLATES
from mvstack.image.plan import ImagePlan
from mvstack.image.policy import image_policy
from mvstack.render.templates import template
from mvstack.support.errors import InvalidInput, Problem, Refused

#: What cloud-config.yaml holds in the place of the cluster's key.
MUNGE_MARK = "@MUNGE_KEY@"
NETWORK = "10.77.0.0/20"
MOST = 4000  # addresses of NETWORK
RESULTS = (
    705  # fifteen collectives x (24 sizes of int + 23 of double): tests/reframe/collectives.py
)

#: What each cloud must be told, by option: the field of Place, its form and an example.
_WANTED: dict[str, dict[str, tuple[str, str, str]]] = {
    "qemu": {},
    "azure": {
        "--image": (
            "image",
            r"/subscriptions(/[\w.()-]+)+/versions/\d+\.\d+\.\d+",
            "/subscriptions/ID/resourceGroups/GROUP/providers/Microsoft.Compute/galleries/GALLERY/"
            "images/NAME/versions/2026.11.0",
        )
    },
    "aws": {
        "--image": ("image", r"ami-[0-9a-f]{8,17}", "ami-0123456789abcdef0"),
        "--region": ("region", r"[a-z]{2}(-[a-z]+)+-\d", "us-east-2"),
        "--subnet": ("subnet", r"subnet-[0-9a-f]{8,17}", "subnet-0123456789abcdef0"),
        "--key-name": ("key_name", r"[^\x00-\x1f\x7f]{1,255}", "mykey"),
    },
}


@dataclass(frozen=True)
class Place:
    """Where in a cloud: the image's id there, and what AWS asks for besides."""

    image: str = ""
    region: str = ""
    subnet: str = ""
    key_name: str = ""


@dataclass(frozen=True)
class Cluster:
    """What a cluster is: ``of`` a partition, so many nodes, which of its machines is the head."""

    of: str
    image: ImagePlan
    nodes: int
    place: Place

    @property
    def head(self) -> str:
        """The machine that runs slurmctld and shares /home; the first node where none is bought."""
        return "node-1" if self.image.cloud == "qemu" else "head"

    @property
    def head_machine(self) -> str:
        """Its size, from the policy."""
        rows = image_policy().heads
        found = [row.machine for row in rows if self.image.cloud in row.when.cloud]
        return found[0] if found else self.image.machine

    @property
    def names(self) -> list[str]:
        """The nodes' names: node-1, node-2, …"""
        return [f"node-{number}" for number in range(1, self.nodes + 1)]

    @property
    def start(self) -> str:
        """The command that starts it, or what does."""
        command = f"mvstack cluster run {self.of} --nodes {self.nodes}"
        return command if self.image.cloud == "qemu" else "the commands of README.md"


def make_cluster(of: str, image: ImagePlan, nodes: int, place: Place) -> Cluster:
    """The cluster of ``nodes`` machines of ``image``.

    Raises Refused where srun starts no ranks, InvalidInput for a number that cannot be.
    """
    where = f"{image.system}/{image.partition}"
    if not any(" srun " in f" {row['launch']} " for row in image.launch):
        raise Refused(
            "a cluster runs jobs by Slurm, and this image holds none",
            where,
            found=f"launch lines: {', '.join(row['launch'] for row in image.launch)}",
            todo="name a partition with `launcher: srun`, e.g. qemu-debian12/cluster",
        )
    if not 2 <= nodes <= MOST:
        raise InvalidInput(f"{nodes} nodes", where, allowed=f"2 to {MOST}", todo="--nodes N")
    return Cluster(of, image, nodes, place)


def cluster_files(cluster: Cluster) -> dict[str, str]:
    """The files by name. Raises InvalidInput naming each option that the cloud needs."""
    image = cluster.image
    _all_given(cluster)
    values = _values(cluster)
    names = {"qemu": (), "azure": ("main.bicep",), "aws": ("image.yaml", "cluster.yaml")}[
        image.cloud
    ]
    files = {
        name: template(f"cluster/{name}", **values)
        for name in ("README.md", "first-job.sh", *names)
    }
    files |= {source.name: source.read_text() for source in programs()}
    if image.cloud != "aws":  # where ParallelCluster does it
        files["cloud-config.yaml"] = cloud_config(cluster)
    return dict(sorted(files.items()))


def _all_given(cluster: Cluster) -> None:
    cloud, place = cluster.image.cloud, cluster.place
    wrong = [
        Problem(
            f"a cluster in {cloud} needs {option}",
            cluster.of,
            found=value or "nothing",
            allowed=f"as {example}",
        )
        for option, (name, pattern, example) in _WANTED[cloud].items()
        if not re.fullmatch(pattern, value := getattr(place, name))
    ]
    if wrong:
        raise InvalidInput(*wrong)


def _values(cluster: Cluster) -> dict[str, object]:
    """What the templates are filled in with."""
    image, place = cluster.image, cluster.place
    row = image.launch[0]
    return {
        "of": cluster.of,
        "name": image.name,
        "cloud": image.cloud,
        "os": image.os.replace(".", ""),  # ubuntu2204
        "nodes": cluster.nodes,
        "names": f"node-[1-{cluster.nodes}]",
        "head": cluster.head,
        "head_machine": cluster.head_machine,
        "machine": image.machine,
        "built_on": image.built_on,
        "cores": image.hardware["cores"],
        "partition": image.partition,
        "user": image.user,
        "secure_boot": image.secure_boot,
        "efa": image.nic_stack == "efa",
        # AWS's HPC sizes have one thread on a core
        "smt": not image.machine.startswith("hpc"),
        "network": NETWORK,
        "munge_mark": MUNGE_MARK,
        "results": RESULTS,
        "module": row["module"],
        "launch": row["launch"],
        "image": place.image,
        "region": place.region,
        "subnet": place.subnet,
        "key_name": place.key_name,
    }


def cloud_config(cluster: Cluster) -> str:
    """What every machine is told at its first start, without the cluster's key.

    Packages are named where the image has no Slurm of its own: in a cloud.
    """
    image = cluster.image
    facts = {
        "HEAD": cluster.head,
        "COMPUTES": "yes" if image.cloud == "qemu" else "no",
        "NETWORK": NETWORK,
        "PACKAGES": "()" if image.cloud == "qemu" else f"({' '.join(_packages(image))})",
    }
    start = "/usr/libexec/mvapich-stack/start-node"
    texts = {
        "/etc/mvapich-stack/cluster": ("".join(f"{k}={v}\n" for k, v in facts.items()), "0644"),
        # not in its place yet: Debian's packages would start Slurm before its key is there
        "/etc/mvapich-stack/slurm.conf": (
            template("cluster/slurm.conf", **_values(cluster)),
            "0644",
        ),
        "/etc/mvapich-stack/munge.key": (MUNGE_MARK + "\n", "0400"),
        start: ((TEMPLATES / "cluster" / "start-node").read_text(), "0755"),
    }
    if image.cloud == "qemu":  # nobody else knows their names
        texts["/etc/hosts"] = (_hosts(cluster), "0644")
    config = {
        "manage_etc_hosts": False,
        "write_files": [
            {"path": path, "permissions": mode, "content": LiteralScalarString(text)}
            for path, (text, mode) in texts.items()
        ],
        "runcmd": [[start]],
    }
    stream = io.StringIO()
    yaml = YAML()
    yaml.width = 200
    yaml.dump(config, stream)
    return f"#cloud-config\n# Generated by `mvstack cluster` for {cluster.of}.\n{stream.getvalue()}"


def _packages(image: ImagePlan) -> list[str]:
    """The distribution's Slurm, as the test in the image takes it, and a server of NFS."""
    return [*image.test_packages, "nfs-utils" if image.family == "rhel" else "nfs-kernel-server"]


def address(number: int) -> str:
    """The address of node ``number`` where we give it: 10.77.0.1 is node-1."""
    return f"10.77.{number // 256}.{number % 256}"


def _hosts(cluster: Cluster) -> str:
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback"]
    lines += [f"{address(n)} {name}" for n, name in enumerate(cluster.names, start=1)]
    return "\n".join(lines) + "\n"
