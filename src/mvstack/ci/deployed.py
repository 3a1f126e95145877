"""What is deployed of a partition: a record in the site's cache that the job `deploy` writes last.

A pipeline compares with the commit before it. One that was cancelled, or that nobody approved,
would be forgotten by the next; the record says what users really have.
"""

from __future__ import annotations

import json
import re
import time

from mvstack.cache.place import Place
from mvstack.support.files import write_atomically


def record_of(partition: str) -> str:
    """Where in a cache the record of ``partition`` (as commands name it) stands."""
    return f"deployed/{re.sub(r'[^A-Za-z0-9._-]+', '-', partition).strip('-')}.json"


def note(cache: Place, partition: str, state: str, root: str) -> None:
    """Write down that ``state`` (:attr:`mvstack.ci.graph.Graph.state`) is what users have."""
    row = {
        "partition": partition,
        "state": state,
        "root": root,
        "when": time.strftime("%FT%TZ", time.gmtime()),
    }
    path = cache.writable() / record_of(partition)
    path.parent.mkdir(exist_ok=True)
    write_atomically(path, json.dumps(row, indent=1) + "\n")
