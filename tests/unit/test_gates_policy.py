"""gates.yaml: every gate has its reason, every spec can be read, every mistake has its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvstack.model.constraint import parse
from mvstack.model.gates import GATES, load_gates
from mvstack.model.load import load_policy
from mvstack.support.errors import InvalidInput
from mvstack.support.home import DATA

TEXT = (DATA / "environments" / "policy" / "gates.yaml").read_text()
RULES = load_gates()


def test_every_gate_and_every_row_has_a_reason_and_a_source() -> None:
    assert set(RULES.gates) == set(GATES)
    rows = [*RULES.gates.values(), *RULES.unique, *RULES.known_bad, RULES.mpis]
    assert all(row.why and row.source for row in rows)


def test_what_passes_instead_is_not_itself_bad() -> None:
    for row in RULES.known_bad:
        bad, instead = parse(row.spec), parse(row.instead)
        assert instead.name == bad.name
        assert instead != bad


def test_every_product_of_the_policy_is_known_as_an_mpi() -> None:
    assert set(load_policy().products) <= set(RULES.mpis.packages)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("  roots:\n", "  rootz:\n", "rootz"),
        ('spec: "mvapich~fortran"', 'spec: "mvapich%gcc"', "known word"),
        ("gate: device, exact: true", "gate: devise, exact: true", "did you mean device"),
        ("within: root", "within: rot", "did you mean root"),
        ("    instead: ", "    insted: ", "did you mean instead"),
    ],
)
def test_a_mistake_is_told_with_its_line(old: str, new: str, says: str, tmp_path: Path) -> None:
    assert old in TEXT
    file = tmp_path / "gates.yaml"
    file.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(InvalidInput) as error:
        load_gates(file)
    assert says in str(error.value)
    line = next(i for i, row in enumerate(file.read_text().splitlines(), 1) if new.strip() in row)
    assert any(problem.where.startswith(f"{file}:{line}") for problem in error.value.problems)
