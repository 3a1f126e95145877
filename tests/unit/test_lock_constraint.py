"""The words of Spack's specs that plans use: read, written, and held against packages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mvstack.model.constraint import (
    Constraint,
    matches_version,
    mismatches,
    parse,
    satisfies,
    variant,
)
from mvstack.model.spack_lock import Edge, Lock, Node
from mvstack.support.errors import InvalidInput

names = st.from_regex(r"[a-z][a-z0-9]{0,6}(-[a-z0-9]{1,4})?", fullmatch=True)
versions = st.from_regex(r"[0-9]{1,2}(\.[0-9]{1,2}){0,3}(-[0-9])?", fullmatch=True)
words = st.from_regex(r"[a-z0-9_][a-z0-9_.:-]{0,6}", fullmatch=True)
keys = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True).filter(
    lambda key: key not in ("target", "arch", "platform", "os", "cflags", "cxxflags", "fflags")
)
values = st.one_of(
    st.booleans(), words, st.lists(words, min_size=2, max_size=4, unique=True).map(tuple)
)
wanted_versions = st.one_of(
    versions.map("={}".format),
    versions,
    versions.map("{}:".format),
    versions.map(":{}".format),
    st.tuples(versions, versions).map(":".join),
)


@st.composite
def constraints(draw: st.DrawFn, deep: bool = True) -> Constraint:
    variants = draw(st.dictionaries(keys, values, max_size=4))
    worded = [key for key, value in variants.items() if not isinstance(value, bool)]
    return Constraint(
        draw(names),
        draw(st.sampled_from(["", "builtin", "mvapich_stack"])),
        tuple(draw(st.lists(wanted_versions, max_size=2))),
        variants,
        draw(st.sampled_from(["", "zen2", "x86_64_v3"])),
        tuple(draw(st.lists(constraints(deep=False), max_size=2))) if deep else (),
        frozenset(draw(st.sets(st.sampled_from(worded))) if worded else ()),
    )


def written(one: Constraint) -> str:
    """The words that are read as ``one``."""
    text = f"{one.namespace}.{one.name}" if one.namespace else one.name
    text += "@" + ",".join(one.versions) if one.versions else ""
    for key, value in one.variants.items():
        text += f" {variant(key, value, ':=' if key in one.exact else '=')}"
    text += f" target={one.target}" if one.target else ""
    return text + "".join(f" ^{written(below)}" for below in one.below)


@given(constraints())
def test_what_is_written_is_read_as_the_same(constraint: Constraint) -> None:
    assert parse(written(constraint)) == constraint


@given(st.text(max_size=60))
def test_whatever_is_read_is_a_constraint_or_refused(text: str) -> None:
    try:
        parsed = parse(text)
    except InvalidInput as error:
        assert error.problems[0].found == text
    else:
        assert parse(written(parsed)) == parsed


@given(versions, versions)
def test_an_exact_version_is_itself_alone(version: str, other: str) -> None:
    assert matches_version(version, (f"={version}",))
    assert matches_version(other, (f"={version}",)) == (other == version)


@given(versions, versions)
def test_a_range_holds_its_ends_and_what_is_below_them(low: str, high: str) -> None:
    assert matches_version(low, (f"{low}:",))
    assert matches_version(high, (f":{high}",))
    assert matches_version(f"{high}.7", (f":{high}",))
    assert matches_version(f"{high}.7", (high,))
    assert matches_version(low, (f":{high}",)) or matches_version(high, (f":{low}",))


@pytest.mark.parametrize(
    ("version", "wanted", "holds"),
    [
        ("4.1", "4.0:", True),
        ("4.1", ":4.0", False),
        ("4.0.3", ":4.0", True),
        ("7.5.2", "7.5", True),
        ("7.5.2", "=7.5", False),
        ("10.2.0", "9:", True),
        ("10.2.0", ":9", False),
        ("2.3.7-1", "2.3.7", True),
        ("2.3.7", "2.3.7-1:", False),
        ("3.0rc", "3.0:", False),
        ("3.0rc1", ":2", False),
        ("3.0", ":3.0rc1", False),
        ("3.0rc1", "3.0rc", False),
        ("1.1.1w", "1.1.1:", True),
        ("develop", "99:", True),
        ("1.8.1", ":1.8", True),
        ("1.9.0", ":1.8", False),
    ],
)
def test_versions_compare_as_spack_compares_them(version: str, wanted: str, holds: bool) -> None:
    assert matches_version(version, (wanted,)) is holds


def node(name: str = "ucx", version: str = "1.13.1", **more: object) -> Node:
    return Node("h" + name, name, version, **more)  # type: ignore[arg-type]


def test_a_variant_of_several_words_holds_when_the_wanted_are_among_them() -> None:
    libfabric = node("libfabric", variants={"fabrics": ("shm", "tcp", "verbs")})
    assert mismatches(libfabric, parse("libfabric fabrics=tcp,shm")) == []
    assert mismatches(libfabric, parse("libfabric fabrics=tcp,cxi")) == ["fabrics"]
    assert mismatches(libfabric, parse("libfabric fabrics=tcp,shm"), frozenset({"fabrics"})) == [
        "fabrics"
    ]


def test_values_given_with_a_colon_are_the_only_ones() -> None:
    mpi = node("mvapich", variants={"netmod": ("ofi", "ucx"), "threads": "multiple"})
    assert mismatches(mpi, parse("mvapich netmod=ucx threads:=multiple")) == []
    assert mismatches(mpi, parse("mvapich netmod:=ucx")) == ["netmod"]
    assert mismatches(mpi, parse("mvapich netmod:=ucx,ofi")) == []


def test_each_field_that_differs_is_named() -> None:
    ucx = node(namespace="builtin", target="zen2", variants={"rc": False, "cma": True})
    wanted = parse("mine.ucx@1.14: +rc +cma +dc target=zen3")
    assert mismatches(ucx, wanted) == ["namespace", "version", "target", "rc", "dc"]


def test_what_a_package_needs_is_looked_for_anywhere_below_it() -> None:
    ucx = node(version="1.8.0")
    mpi = node("mvapich", "4.1", dependencies=(Edge("hucx", "ucx", frozenset({"link"})),))
    app = node("app", "1", dependencies=(Edge("hmvapich", "mvapich", frozenset({"link"})),))
    lock = Lock("spack.lock", "1.1.0", (), {n.hash: n for n in (ucx, mpi, app)})
    assert satisfies(lock, app, parse("app ^ucx@:1.8"))
    assert not satisfies(lock, app, parse("app ^ucx@1.9:"))
    assert not satisfies(lock, ucx, parse("ucx ^ucx"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "@4.1",
        "mvapich@",
        "mvapich %gcc@12",
        "mvapich arch=linux-debian12-zen2",
        "mvapich cflags=-O3",
        "mvapich netmod=ucx netmod=ofi",
        "mvapich +cuda~cuda",
        "mvapich@4.1@4.0",
        "mvapich netmod=",
        "mvapich ^",
        "mvapich target=zen2 target=zen3",
    ],
)
def test_words_that_are_not_known_are_refused_and_not_passed_over(text: str) -> None:
    with pytest.raises(InvalidInput) as error:
        parse(text)
    assert error.value.problems[0].found == text
