"""What a person types as the name of a source."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mvstack.sources.spec import SHA256, SourceSpec, named
from mvstack.support.errors import InvalidInput

SPECS = [
    SourceSpec("MVAPICH", "4.0", "mvapich-4.0.tar.gz", ("a" * 64,)),
    SourceSpec("MVAPICH", "4.1", "mvapich-4.1.tar.gz", ("b" * 64,)),
    SourceSpec("MPICH", "4.0.2", "mpich-4.0.2.tar.gz", ("c" * 64,)),
    SourceSpec("Data", "1", "one.tgz", ("d" * 64,)),
    SourceSpec("Data", "1", "two.tgz", ("e" * 64,)),
]


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("mvapich@4.0", ["mvapich-4.0.tar.gz"]),
        (" MVAPICH@4.0\n", ["mvapich-4.0.tar.gz"]),
        ("mvapich", ["mvapich-4.0.tar.gz", "mvapich-4.1.tar.gz"]),
        ("data@1", ["one.tgz", "two.tgz"]),
        ("data@1:two.tgz", ["two.tgz"]),
    ],
)
def test_names_that_are_understood(name: str, files: list[str]) -> None:
    assert [spec.filename for spec in named(SPECS, name)] == files


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("mvapitch@4.0", "mvapich@4.0"),
        ("mpich@4.0.3", "mpich@4.0.2"),
        ("mvapich@9", "mvapich@4.1"),
        ("data@1:tow.tgz", "data@1:two.tgz"),
    ],
)
def test_a_typo_is_answered_with_the_nearest_name(name: str, nearest: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        named(SPECS, name)
    problem = caught.value.problems[0]
    assert problem.nearest == nearest
    assert f"did you mean {nearest}?" in problem.message


@given(st.text())
def test_any_text_is_a_name_or_a_clear_error(name: str) -> None:
    try:
        assert named(SPECS, name)
    except InvalidInput as error:
        assert "no recipe has a source" in str(error)


@given(st.sampled_from(SPECS), st.data())
def test_case_and_white_space_never_matter(spec: SourceSpec, data: st.DataObject) -> None:
    flips = data.draw(st.lists(st.booleans(), min_size=len(spec.name), max_size=len(spec.name)))
    typed = "".join(c.upper() if up else c for c, up in zip(spec.name, flips, strict=True))
    assert spec in named(SPECS, f"  {typed} ")


@given(st.text())
def test_no_name_leads_out_of_the_mirror(name: str) -> None:
    try:
        spec = SourceSpec("Alpha", "1", name, ("a" * 64,))
    except InvalidInput:
        return
    assert "/" not in spec.filename
    assert not spec.filename.startswith((".", "-"))
    assert spec.filename.isprintable()


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "/etc/passwd", "a/b", "-rf", "a\nb", "a\0"]
)
def test_odd_names_are_refused(name: str) -> None:
    for fields in (("Alpha", name), (name, "file.tar.gz")):
        with pytest.raises(InvalidInput, match="cannot be a name in the mirror"):
            SourceSpec(fields[0], "1", fields[1], ("a" * 64,))


def test_a_sha256_is_64_digits_in_lower_case() -> None:
    assert SHA256.fullmatch("0" * 64)
    assert not any(SHA256.fullmatch(one) for one in ("0" * 63, "0" * 65, "A" * 64, "0" * 64 + "\n"))
