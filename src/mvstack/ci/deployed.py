"""What is deployed of a partition: a record in the site's cache that the job `deploy` writes last.

A pipeline compares with the commit before it, so what a cancelled or unapproved pipeline left
undone would be forgotten; the record says what users really have.
"""

import json
import re
import time

from mvstack.cache.place import Place, Unreachable, place
from mvstack.model.ci import Settings, Site
from mvstack.support.files import write_atomically


def record_of(partition: str) -> str:
    """The file in a cache that records what is deployed of ``partition`` (its name in commands)."""
    return f"deployed/{re.sub(r'[^A-Za-z0-9._-]+', '-', partition).strip('-')}.json"


def note(cache: Place, partition: str, state: str, root: str) -> None:
    """Record that ``state`` (:attr:`mvstack.ci.graph.Graph.state`) is what users have."""
    row = {
        "partition": partition,
        "state": state,
        "root": root,
        "when": time.strftime("%FT%TZ", time.gmtime()),
    }
    write_atomically(cache.writable() / record_of(partition), json.dumps(row, indent=1) + "\n")


def deployed_state(settings: Settings, site: Site, partition: str) -> str | None:
    """The state that was deployed last; "" when none was, None where nothing is ever deployed.

    A cache that cannot be asked counts as one that has no record.
    """
    if not (site.root and settings.push):
        return None
    try:
        found = place(settings.push).read(record_of(partition))
        return str(json.loads(found)["state"]) if found else ""
    except (Unreachable, ValueError, KeyError, TypeError):
        return ""
