"""What carries the messages, as the MPI library and what is beneath it say themselves."""

import re


def providers(said):
    """libfabric's provider as MPICH's summary names the one in use, whole and its parts.

    The lines ``provider: <name>, score = ...`` are candidates, most of them not used.
    """
    found = set(re.findall(r"^libfabric provider: (\S+)", said, re.M))
    return found | {part for name in found for part in name.split(";")}


def transports(said):
    """UCX's transports as its log of endpoints (UCX_LOG_LEVEL=info) names them."""
    rows = re.findall(r"ep_cfg\[\d+\]: (.*)$", said, re.M)
    return {name for row in rows for name in re.findall(r"(\w+)/\w+", row)}
