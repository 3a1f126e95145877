"""What a person writes is hostile: it is refused with its line, or stands whole in what is made.

Each mutation of a system file ends in one of the two. What is rendered is read back by ruamel,
json, ast, and by a real Lua that records what module files call and has nothing else to call.
"""

from __future__ import annotations

import ast
import copy
import io
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lupa.lua54 import LuaRuntime
from ruamel.yaml import YAML

from mvstack.model.base import Strict
from mvstack.model.gates import Gates
from mvstack.model.load import load_policy, load_release, parse_system
from mvstack.model.policy import FILES
from mvstack.model.release import Addition, Release
from mvstack.model.spack import SpackPins
from mvstack.model.system import System
from mvstack.plan.make import make_plan
from mvstack.plan.types import Given, Plan
from mvstack.render.partition import render
from mvstack.render.templates import lua, lua_long, quoted, yaml
from mvstack.support.errors import InvalidInput, MvstackError

POLICY, RELEASE = load_policy(), load_release()
SYSTEM: dict[str, Any] = {
    "name": "mine",
    "title": "A machine",
    "site": "A site",
    "builder": "spack",
    "os": "rocky9",
    "source": "somebody",
    "confirm": {"title": "whether it is one"},
    "install": {"root": "/apps", "group": "staff", "licensed": {"Amber": "amber"}},
    "partitions": {
        "cpu": {
            "title": "Nodes",
            "cores": 64,
            "memory_gb": 512,
            "target": "zen3",
            "fabric": "infiniband",
            "nic": "mlx5",
            "gpu": "nvidia",
            "gpus": 4,
            "gpu_model": "A100",
            "gpu_buffers": "staged",
            "launcher": "srun",
            "pmi": "pmi2",
            "scheduler_options": ["--partition=x"],
            "file_systems": ["lustre"],
            "compiler": {"name": "gcc", "version": "12.2.0", "prefix": "/opt/gcc"},
            "externals": {
                "pmix": {"version": "4.2", "prefix": "/opt/pmix", "variants": "+x"},
                "ucx": {"version": "1.15", "prefix": "/opt/ucx", "transports": ["rc_mlx5"]},
                "libfabric": {"version": "1.20", "prefix": "/opt/ofi", "providers": ["verbs"]},
                "slurm": {"version": "23.02", "prefix": "/usr", "mpi": ["pmi2"]},
            },
            "mpi": {"why": "because", "product": "mvapich", "version": "4.1", "device": "ch4:ucx"},
            "without": {"CP2K": "not wanted"},
        }
    },
}  # fmt: skip
CPU = ("partitions", "cpu")
PMIX = (*CPU, "externals", "pmix")
Place = tuple[Any, ...]


def changed(place: Place, value: Any) -> dict[str, Any]:
    data = copy.deepcopy(SYSTEM)
    node: Any = data
    for part in place[:-1]:
        node = node[part]
    node[place[-1]] = value
    return data


def plan_of(data: dict[str, Any]) -> Plan:
    out = io.StringIO()
    YAML().dump(data, out)
    system = parse_system(out.getvalue(), Path("mine.yaml"))
    return make_plan(system, next(iter(system.partitions)), RELEASE, POLICY, Given(profile="small"))


# --- reading back ----------------------------------------------------------------------------

ALLOWED = ("help", "whatis", "family", "setenv", "prepend_path", "depends_on", "load")
DANGER = ("loadfile", "dofile", "require", "loadstring", "pcall", "error", "print", "conflict")
LUA = LuaRuntime(unpack_returned_tuples=True, register_eval=False, register_builtins=False)
LOAD = LUA.eval(
    """
function(text, record)
  local env = {os = {}, io = {}}
  local function recorder(name) return function(...) record(name, ...) end end
  for _, name in ipairs({NAMES}) do env[name] = recorder(name) end
  for _, name in ipairs({"execute", "exit", "remove"}) do env.os[name] = recorder("os." .. name) end
  for _, name in ipairs({"popen", "open"}) do env.io[name] = recorder("io." .. name) end
  assert(load(text, "module", "t", env))()
end
""".replace("NAMES", ", ".join(f'"{name}"' for name in ALLOWED + DANGER))
)


def calls(text: str) -> list[list[str]]:
    """What a module file calls, each with its arguments; it has nothing else to call."""
    found: list[list[str]] = []
    LOAD(text, lambda *call: found.append(list(call)))
    return found


def read_back(plan: Plan) -> dict[str, Any]:
    """Every rendered file as its own reader takes it; what would have been hurt is compared."""
    read: dict[str, Any] = {}
    for name, text in render(plan).items():
        if name.endswith(".yaml"):
            read[name] = YAML(typ="safe", pure=True).load(text)
        elif name.endswith(".json"):
            read[name] = json.loads(text)
        elif name.endswith((".eb", ".py")):
            read[name] = ast.parse(text)
        elif name.endswith(".lua"):
            read[name] = calls(text)
            said = [(call[0], *call[1:]) for call in read[name]]
            assert {call[0] for call in said} <= set(ALLOWED)
            assert ("setenv", "MVSTACK_TREE", plan.tree) in said
            assert ("prepend_path", "MODULEPATH", f"{plan.tree}/modules/Core") in said
            compiler = f"{plan.compiler['name']}/{plan.compiler['version']}"
            assert ("depends_on", compiler) in said
        else:
            pytest.fail(f"no reader for {name}")
    packages = read["spack/packages.yaml"]["packages"]
    for one in plan.externals:
        (there,) = packages[one["package"]]["externals"]
        assert there == {"spec": one["spec"], "prefix": one["prefix"]}
    asked = {row["package"] for row in plan.externals}
    known = read_back_keys() if plan.builder == "spack" else set(packages)
    assert set(packages) <= known | asked
    assert read["spack/config.yaml"]["config"]["install_tree"]["root"] == f"{plan.tree}/software"
    return read


@cache
def read_back_keys() -> set[str]:
    text = render(plan_of(SYSTEM))["spack/packages.yaml"]
    return set(YAML(typ="safe", pure=True).load(text)["packages"])


# --- the table -------------------------------------------------------------------------------

REFUSED = "refused"
WHOLE = "whole"
CASES: list[tuple[Place, Any, str]] = [
    ((*CPU, "compiler", "name"), 'gcc") os.execute("touch /tmp/x") --', REFUSED),
    ((*CPU, "compiler", "name"), "gcc\nos.exit()", REFUSED),
    ((*CPU, "compiler", "name"), "gcc]==]", REFUSED),
    ((*CPU, "compiler", "version"), '12.2.0") os.execute("x") --', REFUSED),
    ((*CPU, "compiler", "prefix"), "/opt/gcc #13", WHOLE),
    ((*CPU, "compiler", "prefix"), "/opt/gcc: x", WHOLE),
    (("install", "root"), '/apps") os.execute("touch /tmp/x") --', WHOLE),
    (("install", "root"), "/apps/]==]..os.execute('x')..[==[", WHOLE),
    (("install", "root"), "/apps/with space", WHOLE),
    (("install", "root"), "/apps\\", WHOLE),
    (("install", "root"), "/apps\nx", REFUSED),
    (("install", "root"), "/", REFUSED),
    (("install", "root"), "//", REFUSED),
    (("install", "root"), "/./", REFUSED),
    (("install", "root"), "/apps/../../etc", REFUSED),
    (("install", "root"), "apps", REFUSED),
    (("install", "group"), "a b; id", REFUSED),
    (("install", "group"), "$(id)", REFUSED),
    (("install", "group"), "site_users", WHOLE),
    (("install", "licensed"), {"Amber": "a; id"}, REFUSED),
    (("name",), "a..b", REFUSED),
    (("name",), "../x", REFUSED),
    (("name",), "a\n", REFUSED),
    (("name",), "x" * 41, REFUSED),
    (("title",), "a\x1b[31mred", REFUSED),
    (("title",), "\u202eright to left", REFUSED),
    (("title",), "x" * 100_000, REFUSED),
    (("title",), "two\nlines", REFUSED),
    (("title",), "Zürich: #1 {{ x }} ]==] \"'`$(id)", WHOLE),
    ((*CPU, "title"), '") os.execute("x") --', WHOLE),
    ((*CPU, "cores"), 10**29, REFUSED),
    ((*CPU, "memory_gb"), 10**29, REFUSED),
    ((*CPU, "nodes"), -1, REFUSED),
    ((*CPU, "gpus"), 10**9, REFUSED),
    ((*CPU, "scheduler_options"), ["--x\n#SBATCH --uid=0"], REFUSED),
    ((*CPU, "file_systems"), ["lustre\nx"], REFUSED),
    ((*CPU, "externals"), {"libfabrc": {"prefix": "/usr"}}, REFUSED),
    ((*CPU, "externals"), {"a: b": {"prefix": "/usr"}}, REFUSED),
    ((*CPU, "externals"), {"hwloc #x": {"prefix": "/usr"}}, REFUSED),
    ((*PMIX, "prefix"), "/opt/pmix #13", WHOLE),
    ((*PMIX, "prefix"), "/opt/pmix: 13", WHOLE),
    ((*PMIX, "prefix"), "/opt/pmix\n      buildable: true", REFUSED),
    ((*PMIX, "variants"), '+x cflags="-O2"', WHOLE),
    ((*PMIX, "variants"), '+x"\n  evil:\n    buildable: true #', REFUSED),
    ((*PMIX, "variants"), '"} evil: {a: "', WHOLE),
    ((*PMIX, "version"), '4.2" #', REFUSED),
    ((*CPU, "externals", "libfabric", "providers"), ["verbz"], REFUSED),
    ((*CPU, "mpi", "device"), "ch4:ucx; id", REFUSED),
    ((*CPU, "without"), {"a\nb": "x"}, REFUSED),
]  # fmt: skip


@pytest.mark.parametrize("builder", ["spack", "easybuild"])
@pytest.mark.parametrize(("place", "value", "outcome"), CASES)
def test_each_mutation_is_refused_with_its_line_or_stands_whole(
    place: Place, value: Any, outcome: str, builder: str
) -> None:
    data = {**changed(place, value), "builder": builder}
    if outcome == REFUSED:
        with pytest.raises(InvalidInput) as caught:
            plan_of(data)
        assert all(one.where.startswith("mine.yaml:") for one in caught.value.problems)
        assert all(len(line) < 500 for one in caught.value.problems for line in one.lines())
        return
    plan = plan_of(data)
    read_back(plan)
    if place[-1] == "prefix" and "pmix" in place:
        assert {"package": "pmix", "prefix": value} in [
            {"package": one["package"], "prefix": one["prefix"]} for one in plan.externals
        ]


# --- anything at all -------------------------------------------------------------------------


def strings(node: Any, at: Place = ()) -> Iterator[Place]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield from strings(value, (*at, key))
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from strings(value, (*at, number))
    elif isinstance(node, str):
        yield at


TRICKS = st.sampled_from(
    [
        '"',
        "'",
        "]]",
        "]==]",
        "\\",
        "\n",
        "#",
        ": ",
        "{{ x }}",
        "${x}",
        "$(id)",
        "`id`",
        "--[[",
        "%}",
    ]
)
TEXT = st.lists(st.text(max_size=8) | TRICKS, max_size=5).map("".join)


@given(place=st.sampled_from(list(strings(SYSTEM))), text=TEXT, before=st.booleans())
@example(place=("install", "root"), text='") os.execute("x") --', before=True)
def test_any_text_in_any_free_string_is_refused_or_stands_whole(
    place: Place, text: str, before: bool
) -> None:
    node: Any = SYSTEM
    for part in place:
        node = node[part]
    try:
        plan = plan_of(changed(place, f"{node}{text}" if before else text))
    except MvstackError as error:
        assert error.problems
        return
    except UnicodeEncodeError:  # an unpaired surrogate is no text that a file can hold
        return
    read_back(plan)


def unbounded(schema: Any, at: str = "") -> Iterator[str]:
    """Where a schema takes text of any length and kind."""
    if isinstance(schema, dict):
        if schema.get("type") == "string" and not {"maxLength", "enum", "const"} & schema.keys():
            yield at
        for key, value in schema.items():
            yield from unbounded(value, f"{at}/{key}")
    elif isinstance(schema, list):
        for number, value in enumerate(schema):
            yield from unbounded(value, f"{at}/{number}")


@pytest.mark.parametrize("model", [System, Release, Addition, Gates, SpackPins, *FILES.values()])
def test_no_hand_written_file_has_a_string_that_nobody_validates(model: type[Strict]) -> None:
    assert list(unbounded(model.model_json_schema())) == []


# --- the writers -----------------------------------------------------------------------------


@given(TEXT)
def test_yaml_reads_back_what_was_written(text: str) -> None:
    plain = "".join(char for char in text if char.isprintable())
    for write in (yaml, quoted):
        said = f"a:\n  - {write(plain)}\n  - b\n{write('k' + plain)}: c\n"
        found = YAML(typ="safe", pure=True).load(said)
        assert found == {"a": [plain, "b"], "k" + plain: "c"}


@given(st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"])) | TEXT)
@example("]==")
@example("\n]==]\n")
@example("x]=")
def test_lua_reads_back_what_was_written(text: str) -> None:
    text = text.encode("utf-8", "replace").decode().replace("\r", "").replace("\0", "")
    made = f"setenv({lua(text)})\nhelp({lua_long(text)})"
    assert calls(made) == [["setenv", text], ["help", text]]
