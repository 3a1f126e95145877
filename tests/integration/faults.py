"""Keeps by which check a planted fault was caught, for the table of docs/doctor.md.

With MVSTACK_TEST_FAULTS_RECORD=1 each fault goes into tests/data/faults-record.jsonl, in the
place of its older line for the same MPI and builder.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RECORD = Path(__file__).parents[1] / "data" / "faults-record.jsonl"


def public(message: str) -> str:
    """One line of a message without what is of this machine: its folders, files and name."""
    line = " ".join(message.split()).partition("; files: ")[0]
    if not re.match("(build )?job ", line):
        line = line.partition("; stderr ends: ")[0]
    line = re.sub(r"(?<![\w./…])/(?:[^/\s:,;'\"()]+/)+", "…/", line)
    return line.replace(platform.node(), "node1")[:400]


def caught(fault: str, by: list[str], message: str, plan: dict[str, Any]) -> None:
    """Keep that ``fault`` was told ``by`` these checks; of what nobody told, ``by`` is empty."""
    if not os.environ.get("MVSTACK_TEST_FAULTS_RECORD"):
        return
    git = ["git", "-C", str(RECORD.parent), "rev-parse", "--short=8", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    mpi = plan["mpi"][0]
    row = {
        "fault": fault,
        "by": sorted({one.split()[0] for one in by}),
        "message": public(message),
        "mpi": f"{mpi['product']} {mpi['version']} {mpi['device']}",
        "builder": plan["builder"],
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit,
    }
    key = ("fault", "mpi", "builder")
    rows = [json.loads(line) for line in RECORD.read_text().splitlines()] if RECORD.exists() else []
    rows = [one for one in rows if any(one[name] != row[name] for name in key)]
    lines = sorted(json.dumps(one, ensure_ascii=False) for one in [*rows, row])
    RECORD.write_text("\n".join(lines) + "\n")
