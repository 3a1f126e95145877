"""When the solver is asked again, what a lock file says is missing, and who chooses the bytes."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from install_tree import plan_in

from mvstack.builders.spack import lock
from mvstack.builders.spack.environments import overlay
from mvstack.builders.spack.resolve import installed, pending, read
from mvstack.builders.spack.sources import source_of
from mvstack.model.load import load_policy, load_release, load_system
from mvstack.model.spack_lock import parse_lock
from mvstack.plan.make import make_plan
from mvstack.plan.spack import package_of, spack_graph
from mvstack.plan.types import Accepted, Given, Package, Plan
from mvstack.support.errors import Missing
from mvstack.support.home import DATA

FILES = {
    "spack/spack.yaml": "spack:\n  specs: [mvapich@=4.1]\n",
    "spack/packages.yaml": "packages: {}\n",
}


# --- the inputs of a concretization ---------------------------------------------------------------


def test_comments_and_layout_do_not_count() -> None:
    other = {**FILES, "spack/spack.yaml": "# why\nspack:\n  specs:\n  - mvapich@=4.1   # newest\n"}
    assert lock.inputs_of(other) == lock.inputs_of(FILES)


@pytest.mark.parametrize(
    "changed",
    [
        {"spack/spack.yaml": "spack:\n  specs: [mvapich@=4.0]\n"},
        {"spack/packages.yaml": "packages: {all: {require: target=zen4}}\n"},
        {"spack/repo-accepted/x/package.py": "version('4.0', sha256='a')\n"},
    ],
)
def test_every_file_counts(changed: dict[str, str]) -> None:
    assert lock.inputs_of({**FILES, **changed}) != lock.inputs_of(FILES)


def test_recipes_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = tmp_path / "packages" / "a" / "package.py"
    recipe.parent.mkdir(parents=True)
    (tmp_path / "repo.yaml").write_text("repo: {}\n")
    monkeypatch.setattr("mvstack.plan.spack.RECIPES", tmp_path)
    found = []
    for text in ("version('1')\n", "# why\nversion('1')\n", "version('2')\n"):
        recipe.write_text(text)
        found.append(lock.inputs_of(FILES))
    assert found[0] == found[1] != found[2]


def test_only_the_environment_is_looked_at() -> None:
    others = {"plan.json": "{}", "spack/spack.lock": "b"}
    assert lock.inputs_of({**FILES, **others}) == lock.inputs_of(FILES)


# --- the graph of a lock file ---------------------------------------------------------------------


def spec(name: str, *below: tuple[str, str], external: bool = False) -> dict[str, Any]:
    """One concrete package; ``below`` are (hash, kind) of what it depends on."""
    return {
        "name": name,
        "version": "1",
        "arch": {"platform": "linux", "platform_os": "debian12", "target": "zen4"},
        **({"external": {"path": "/usr"}} if external else {}),
        "dependencies": [
            {"name": key, "hash": key, "parameters": {"deptypes": [kind], "virtuals": []}}
            for key, kind in below
        ],
    }


def lock_file(specs: Any, *roots: str) -> str:
    """A lock file as Spack writes it."""
    meta = {"file-type": "spack-lockfile", "lockfile-version": 6}
    asked = [{"hash": root, "spec": root} for root in roots]
    return json.dumps({"_meta": meta, "concrete_specs": specs, "roots": asked})


LOCK = parse_lock(
    lock_file(
        {
            "app": spec("app", ("mpi", "link"), ("tool", "build")),
            "mpi": spec("mpi", ("fabric", "link"), ("tool", "build")),
            "fabric": spec("fabric", external=True),
            "tool": spec("tool"),
        },
        "app",
        "mpi",
    )
)


@pytest.mark.parametrize(
    ("there", "wanted"),
    [
        (set(), ["mpi", "tool", "app"]),
        ({"mpi"}, ["tool", "app"]),
        ({"mpi", "tool"}, ["app"]),
        ({"mpi", "app"}, []),  # what only a build needs is no more missed once that is done
        ({"app"}, ["tool", "mpi"]),
    ],
)
def test_what_is_to_be_installed_depends_on_what_is_there(
    there: set[str], wanted: list[str]
) -> None:
    found = [node.hash for node in pending(LOCK, there)]
    assert sorted(found) == sorted(wanted) and "fabric" not in found
    if "app" in found:
        assert found[-1] == "app"  # what it stands on comes first


def test_a_damaged_lock_says_how_it_heals(tmp_path: Path) -> None:
    (tmp_path / "spack.lock").write_text('{"roots": [')
    with pytest.raises(Missing, match="this is not a lock file") as caught:
        read(tmp_path / "spack.lock")
    assert "remove it" in caught.value.problems[0].todo


@pytest.mark.parametrize(
    ("specs", "why"),
    [
        ({"app": spec("app", ("mpi", "link"))}, "which the file lacks"),
        ({"app": {"version": "1"}}, "app.name: Field required"),
        ({"app": None}, "this is not a lock file"),
        ([], "this is not a lock file"),
    ],
)
def test_a_lock_from_which_something_was_cut_says_so_at_once(
    tmp_path: Path, specs: Any, why: str
) -> None:
    file = tmp_path / "spack.lock"
    file.write_text(lock_file(specs, "app"))
    with pytest.raises(Missing, match=why):
        read(file)


def test_spacks_database_says_what_is_installed(tmp_path: Path) -> None:
    assert installed(tmp_path) == {}
    index = tmp_path / ".spack-db" / "index.json"
    index.parent.mkdir()
    rows = {"a": {"installed": True, "path": "/a"}, "b": {"installed": False, "path": "/b"}}
    index.write_text(json.dumps({"database": {"installs": rows}}))
    assert installed(tmp_path) == {"a": Path("/a")}
    index.write_text("{")
    assert installed(tmp_path) == {}


# --- accepted bytes -------------------------------------------------------------------------------


def accepting(root: Path) -> Plan:
    """A plan whose MPI's bytes a person accepted, with a reason that tries to break out."""
    policy, release = load_policy(), load_release()
    build = plan_in(root).mpi[0]
    taken = Accepted(["a" * 64], "made here\nimport os  # oops")
    system = load_system(str(DATA / "environments" / "systems" / "azure-hbv4.yaml"))
    accepted = {(build.product, build.version): taken}
    return make_plan(system, "hpc", release, policy, Given(str(root), accepted=accepted))


def test_accepted_bytes_are_a_recipe_over_ours(tmp_path: Path) -> None:
    assert overlay(plan_in(tmp_path)) == {}
    plan = accepting(tmp_path)
    files = overlay(plan)
    top = "spack/repo-accepted/spack_repo/mvapich_stack_accepted"
    assert set(files) == {f"{top}/repo.yaml", f"{top}/packages/mvapich/package.py"}
    text = files[f"{top}/packages/mvapich/package.py"]
    compile(text, "package.py", "exec")
    assert "class Mvapich(Recipe):" in text and f'sha256="{"a" * 64}"' in text
    assert "\nimport os" not in text
    assert "namespace: mvapich_stack_accepted" in files[f"{top}/repo.yaml"]


@pytest.mark.parametrize(
    ("spec", "base", "name"),
    [
        ("osu-micro-benchmarks@=7.5.2", "mvapich_stack_mends", "OsuMicroBenchmarks"),
        ("openblas@=0.3.30 threads=openmp", "builtin", "Openblas"),
        ("npb-upc@=3.3", "mvapich_stack", "NpbUpc"),
    ],
)
def test_accepted_bytes_of_a_package_are_a_recipe_over_its_own(
    tmp_path: Path, spec: str, base: str, name: str
) -> None:
    plan = plan_in(tmp_path)
    one = Package("X", "1.0", "X", "x/1.0", "", "", spec, accepted_sha256=["b" * 64])
    folder = spec.partition("@")[0].replace("-", "_")
    files = overlay(dataclasses.replace(plan, packages=[one]))
    text = next(text for path, text in files.items() if path.endswith(f"{folder}/package.py"))
    assert f"from spack_repo.{base}.packages.{folder}.package import {name} as" in text
    assert f'version("1.0", sha256="{"b" * 64}"' in text


# --- sources --------------------------------------------------------------------------------------


def test_a_sites_recipe_is_part_of_a_nodes_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = accepting(tmp_path)
    repository = tmp_path / "site" / "spack-repo" / "spack_repo" / "lab"
    recipe = repository / "packages" / package_of(plan.mpi[0]).replace("-", "_") / "package.py"
    recipe.parent.mkdir(parents=True)
    (repository / "repo.yaml").write_text("repo: {namespace: lab, api: v2.2}\n")
    monkeypatch.setenv("MVSTACK_SITE", str(tmp_path / "site"))
    found = []
    for text in ("", "x = 1\n", "x = 1  # said\n", "x = 2\n"):
        recipe.write_text(text)
        graph = spack_graph(plan, {}, DATA)
        found.append(graph.nodes[plan.mpi[0].module].content)
    assert found[1] == found[2] and len(set(found)) == 3


def row(**more: Any) -> dict[str, Any]:
    """One source as inside/sources.py tells it."""
    key = "0a6fef7ab9f3347e549fed65ebb98234feea9ee18aea0c8f59baefbe3cf7ffb8"
    return {
        "hash": "h",
        "package": "hpcc",
        "version": "1.5.0",
        "file": "hpcc-1.5.0.tar.gz",
        "sha256": key,
        "path": f"_source-cache/archive/0a/{key}.tar.gz",
        "urls": ["https://hpcchallenge.org/projectsfiles/hpcc/download/hpcc-1.5.0.tar.gz"],
        "page": "",
        **more,
    }


def test_a_source_is_looked_for_where_its_policy_says_and_in_spacks_mirror() -> None:
    found = source_of(row())
    assert (
        found is not None
        and found.known.debian is not None
        and found.known.debian.package == "hpcc"
    )
    assert found.urls[-1].startswith("https://mirror.spack.io/_source-cache/archive/0a/")
    assert found.name == "hpcc@1.5.0"


def test_the_mirror_stores_a_file_under_the_ending_that_spack_looks_for() -> None:
    key = "b" * 64
    found = source_of(row(file="v1.5.0", sha256=key, path=f"_source-cache/archive/bb/{key}.tar.gz"))
    assert found is not None and found.filename == "hpcc-1.5.0.tar.gz"
    odd = row(file="x.deb", sha256=key, path=f"_source-cache/archive/bb/{key}.deb")
    assert source_of(odd) is None  # left to Spack


def test_a_licensed_source_is_never_fetched() -> None:
    found = source_of(row(page="https://example.org/licence", package="vasp", file="vasp.tar.gz"))
    assert found is not None
    assert found.urls == () and found.known.licence_page == "https://example.org/licence"
