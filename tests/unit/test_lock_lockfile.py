"""Reading Spack's lock files: real ones, and those that are damaged."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import lock_files as locks
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mvstack.model.spack_lock import RUNTIME, parse_lock, read_lock
from mvstack.support.errors import InvalidInput


def test_a_real_lock_file() -> None:
    lock = read_lock(locks.DATA / "good.lock")
    assert lock.spack == "1.1.0 2e907202bcc8209a6a62243aab50c179b524cc3b"
    assert {node.name for node in lock.root_nodes()} == {"mvapich", "hpcc"}
    mpi = next(node for node in lock.root_nodes() if node.name == "mvapich")
    assert (mpi.version, mpi.namespace, mpi.target) == ("4.1", "mvapich_stack", "zen2")
    assert mpi.variants["netmod"] in ("ucx", ("ucx",))
    assert mpi.variants["omb"] is True
    assert "cflags" not in mpi.variants
    assert str(mpi) == f"mvapich@4.1/{mpi.hash[:7]}"
    ucx = next(node for node in lock.closure([mpi], RUNTIME) if node.name == "ucx")
    assert ucx.external == "/usr"
    gcc = next(edge for edge in mpi.dependencies if "c" in edge.virtuals)
    assert lock.nodes[gcc.hash].name == "gcc"
    assert gcc.types == {"build"}
    assert 0 < len(lock.built()) < len(lock.nodes)


def test_the_closure_holds_each_node_once_and_all_of_them() -> None:
    lock = read_lock(locks.DATA / "good.lock")
    reached = list(lock.closure(lock.root_nodes()))
    assert sorted(node.hash for node in reached) == sorted(lock.nodes)


BROKEN: list[tuple[str, Any]] = [
    ("is no Spack lock file", lambda d: d["_meta"].update({"file-type": "spack-specfile"})),
    ("version 6 is expected", lambda d: d["_meta"].update({"lockfile-version": 5})),
    ("roots: Field required", lambda d: d.pop("roots")),
    ("concrete_specs: Field required", lambda d: d.pop("concrete_specs")),
    ("roots: Input should be", lambda d: d.update(roots={})),
    ("is not among concrete_specs", lambda d: d["roots"].append({"hash": "x", "spec": "hpl"})),
    ("roots.2.spec: Field required", lambda d: d["roots"].append({"hash": "x"})),
    (".version: Field required", lambda d: _mpi(d).pop("version")),
    (".name: Field required", lambda d: _mpi(d).pop("name")),
    ("has no arch.target", lambda d: _mpi(d).pop("arch")),
    ("has no arch.target", lambda d: _mpi(d)["arch"].pop("target")),
    (".parameters: Input should be", lambda d: _mpi(d).update(parameters=[])),
    (".parameters.netmod.", lambda d: _mpi(d)["parameters"].update(netmod={"ucx": 1})),
    (".dependencies: Input should be", lambda d: _mpi(d).update(dependencies={})),
    (
        ".dependencies.0.parameters.deptypes: Field required",
        lambda d: _mpi(d)["dependencies"][0].pop("parameters"),
    ),
    (
        "dependencies.0.parameters.virtuals: Input should be",
        lambda d: _mpi(d)["dependencies"][0]["parameters"].update(virtuals=3),
    ),
    ("which the file lacks", lambda d: _mpi(d)["dependencies"][0].update(hash="gone")),
    (
        "needs itself",
        lambda d: _mpi(d)["dependencies"][0].update(name="mvapich", hash=_mpi(d)["hash"]),
    ),
]


def _mpi(data: dict[str, Any]) -> dict[str, Any]:
    return locks.node(data, "mvapich")


@pytest.mark.parametrize(("message", "damage"), BROKEN, ids=[message for message, _ in BROKEN])
def test_what_is_wrong_is_said_with_the_file(message: str, damage: Any, tmp_path: Path) -> None:
    data = locks.raw("good")
    damage(data)
    path = tmp_path / "spack.lock"
    path.write_text(json.dumps(data))
    with pytest.raises(InvalidInput) as error:
        read_lock(path)
    problem = error.value.problems[0]
    assert problem.where == str(path)
    assert message in problem.message


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b"[" * 100000])
def test_files_that_are_nothing_of_the_kind(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "spack.lock"
    path.write_bytes(content)
    with pytest.raises(InvalidInput) as error:
        read_lock(path)
    assert error.value.problems[0].where == str(path)


def test_an_external_names_one_module_or_several() -> None:
    for modules in ("ucx/1.17", ["ucx/1.17"]):
        data = locks.raw("good")
        node = locks.node(data, "ucx")
        node["external"] = {"path": None, "module": modules}
        assert parse_lock(json.dumps(data)).nodes[node["hash"]].external == "ucx/1.17"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_lock(tmp_path / "spack.lock")


ODD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.just([]), st.just({})
)


@given(data=st.data())
def test_no_damage_to_a_node_is_a_crash(data: st.DataObject) -> None:
    """Any field of any node replaced by anything: read, or refused with the file's name."""
    whole = copy.deepcopy(locks.raw("good"))
    node = whole["concrete_specs"][data.draw(st.sampled_from(sorted(whole["concrete_specs"])))]
    node[data.draw(st.sampled_from(sorted(node)))] = data.draw(ODD)
    try:
        parse_lock(json.dumps(whole), "some.lock")
    except InvalidInput as error:
        assert error.problems[0].where == "some.lock"
