"""Figures that a system's results are held against: tests/references/<system>.yaml.

Each row names the partition, the MPI build (its module), the figure, the message size in bytes
(absent where the figure has none), the value and its unit, how far below and above it may be (as
parts of 1, null for no bound), and the source. Without a row a figure is recorded, never judged.
Rows with a `kind` are what others say of the machine: reports show them, and they judge nothing.
"""

import os
from pathlib import Path

import yaml

FOLDER = Path(__file__).resolve().parent.parent / "references"
SITE = os.environ.get("MVSTACK_SITE")  # a site's own folder; its figures stand for ours
FIELDS = {"partition", "mpi", "figure", "size", "value", "unit", "below", "above", "source"}
OPTIONAL = {"size"}


def load(system, folder=FOLDER):
    """The rows of ``system``; [] where it has no file. A row with a wrong field is an error."""
    path = Path(SITE or folder, "references" if SITE else "", f"{system}.yaml")
    path = path if path.is_file() else folder / f"{system}.yaml"
    if not path.is_file():
        return []
    rows = yaml.safe_load(path.read_text()) or []
    if not isinstance(rows, list):
        raise ValueError(f"{path}: expected a list of rows")
    rows = [row for row in rows if not (isinstance(row, dict) and "kind" in row)]
    for count, row in enumerate(rows, 1):
        unknown, missing = set(row) - FIELDS, FIELDS - OPTIONAL - set(row)
        if unknown or missing:
            raise ValueError(
                f"{path}: row {count}: unknown fields {sorted(unknown)}, missing fields "
                f"{sorted(missing)}; allowed: {', '.join(sorted(FIELDS))}"
            )
        for field in ("value", "below", "above"):
            number = row[field]
            if not isinstance(number, int | float) and (field == "value" or number is not None):
                raise ValueError(
                    f"{path}: row {count}: {field} is {number!r}, which is no number (YAML takes "
                    f"1e-6 for a text: write 0.000001)"
                )
    return rows


def reference(rows, partition, mpi, figure, size, unit):
    """ReFrame's ``(value, lower, upper, unit)`` for one figure, or None where no row fits."""
    for row in rows:
        if (row["partition"], row["mpi"], row["figure"], row.get("size"), row["unit"]) == (
            partition,
            mpi,
            figure,
            size,
            unit,
        ):
            lower = -row["below"] if row["below"] is not None else None
            return (row["value"], lower, row["above"], unit)
    return None
