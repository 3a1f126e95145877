"""What carries the messages: as the MPI and what is beneath it say, and as the kernel counts."""

import os
import re
from pathlib import Path


def providers(said):
    """libfabric's provider as MPICH's summary, or Open MPI's MTL, names it; whole and its parts.

    MPICH's lines ``provider: <name>, score = ...`` are candidates, most of them not used.
    """
    found = set(re.findall(r"^(?:libfabric provider|\[.*mtl:ofi:prov): (\S+)", said, re.M))
    return found | {part for name in found for part in name.split(";")}


def transports(said):
    """UCX's transports as its log of endpoints (UCX_LOG_LEVEL=info) names them.

    Up to 1.14 a line says ``ep_cfg[1]: tag(…)``, later ones ``inter-node cfg#1 tag(…)``.
    """
    rows = re.findall(r"(?:ep_cfg\[\d+\]:|\bcfg#\d+) (.*)$", said, re.M)
    return {name for row in rows for name in re.findall(r"(\w+)/\w+", row)}


def ways(said):
    """Which ways messages go, as src/identity.c and the MPI said, and on how many nodes ranks ran.

    libfabric's provider, UCX's transports, ``memory`` where two ranks are on one node, ``network``
    where two are not.
    """
    ranks = re.findall(r"^rank \d+ on (\S+):", said, re.M)
    nodes = len({*ranks}) or 1
    found = providers(said) | transports(said)
    found |= {"memory"} if nodes < len(ranks) else set()
    return found | ({"network"} if nodes > 1 else set()), nodes


# The devices whose runtime says which provider or transports are in use, and where to look.
SAYS = {
    "provider": ("ch4:ofi mtl:ofi", providers, "FI_PROVIDER and `fi_info -l`"),
    "transports": ("ch4:ucx", transports, "UCX_TLS, `ucx_info -d`"),
    "memory": ("ch4:ucx", transports, "the transports of the GPU in `ucx_info -d`"),
}


def fault(said, device, planned):
    """What speaks against messages going as planned; "" if nothing does.

    Of each list that was planned one must be in use: TCP with a GPU's transport beside it is TCP.
    """
    for kind, (devices, read, look) in SAYS.items():
        used, wanted = read(said), planned.get(kind)
        if wanted and device in devices.split() and not used & set(wanted):
            return (
                f"the {kind} is {', '.join(sorted(used)) or 'not named'}; planned was "
                f"{' or '.join(wanted)}. Look at {look}"
            )
    return ""


def over_tcp(said, planned, nodes=1):
    """What speaks against the bytes that the kernel counted; "" if nothing does.

    ``said`` is what src/identity.c printed, ``nodes`` how many the scheduler was asked for: two of
    its nodes may be one host. Whatever the library says: between the ranks of one node nothing
    goes over TCP, and between nodes only where TCP was planned.
    """
    rows = re.findall(r"^rank (\d+) on (\S+): (\d+) of (\d+) bytes over TCP$", said, re.M)
    if not rows:
        return "no rank said what it sent over TCP"
    nodes = max(nodes, len({node for _, node, _, _ in rows}))
    wanted = {*planned.get("provider", ()), *planned.get("transports", ())}
    carried = [(rank, int(sent)) for rank, _, sent, total in rows if 2 * int(sent) > int(total)]
    if not carried or (nodes > 1 and "tcp" in wanted):
        return ""
    rank, sent = carried[0]
    between = "two nodes, whose fabric is another," if nodes > 1 else "ranks of one node"
    return (
        f"messages between {between} go over TCP: the kernel counted {sent} bytes at rank {rank}, "
        f"of {rows[0][3]}. Look for UCX_TLS, FI_PROVIDER and MPIR_CVAR_NOLOCAL in `module show` "
        f"and `env`"
    )


def other_transport(paths, mpi, tree):
    """What speaks against the libraries ``paths`` that a process of ``mpi`` uses; "" if nothing.

    A UCX or libfabric beside the one that the MPI was built over works as well, but more slowly, or
    without the adapter. An MPI of the site has its own. A site's folder may hold links alone.
    """
    under = mpi.get("transport", {})
    stem = {"ucx": "libucp.so", "libfabric": "libfabric.so"}.get(under.get("library"))
    place = tree if under.get("provision") == "built" else mpi["believe"].get("beneath")
    if not (stem and place) or mpi.get("provided"):
        return ""
    below = os.path.realpath(place) + os.sep
    linked = {os.path.realpath(one) for one in Path(place).glob("lib*/" + stem + "*")}
    for path in paths:
        real = os.path.realpath(path)
        if Path(path).name.startswith(stem) and not (real.startswith(below) or real in linked):
            return (
                f"{path}; planned was that below {place}. Look at LD_LIBRARY_PATH in `env` and in "
                f"`module show {mpi['module']}`"
            )
    return ""


LOCKED = 64 << 20  # bytes of locked memory that a rank with an adapter needs at least


def little_locked(said, fabric):
    """What speaks against the memory that ranks may lock, as src/identity.c says; "" if nothing."""
    for limit in re.findall(r"^a process may lock (\d+) bytes of memory$", said, re.M):
        if fabric not in ("shm", "tcp") and int(limit) < LOCKED:
            return (
                f"a rank may lock {int(limit) >> 10} kB of memory, and adapters for {fabric} "
                f"register what they send and receive ({LOCKED >> 20} MB at least). Set `ulimit "
                f"-l unlimited` in the job; the staff: memlock in limits.d, LimitMEMLOCK of slurmd"
            )
    return ""


# Variables that change how an MPI, or what is beneath it, behaves.
TUNING = "FI|UCX|MPIR_CVAR|MPICH|MVP|MV2|I_MPI"


def unplanned(said, planned, own):
    """What differs between the variables of a job and those of the plan; "" if nothing does.

    ``said`` has a line ``set NAME=VALUE`` for each variable of TUNING, ``planned`` is NAME → VALUE,
    ``own`` are the names that the check itself sets.
    """
    found = dict(re.findall(r"^set (\w+)=(.*)$", said, re.M))
    found = {name: value for name, value in found.items() if name not in own}
    wrong = [
        f"{name} is {found.get(name, 'not set')}, planned was {planned.get(name, 'not to set it')}"
        for name in sorted({*found, *planned})
        if found.get(name) != planned.get(name)
    ]
    return "; ".join(wrong)
