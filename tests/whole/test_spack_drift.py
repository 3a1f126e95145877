"""Our two repositories in a stock Spack over builtin as it is pinned, as it is newest, and to come.

The last also in the Spack to come.

What moved away beneath them is said by name: a recipe that does not load, a finding of `spack
audit`, a rule of upstream's style, a mend that is no longer needed, a spec that is refused.
"""

import json
import subprocess
import sys
import tomllib

import pytest
from ruamel.yaml import YAML
from spack_stock import MENDS, REPOSITORIES, STACK, TOP, Stock, clone_of

INSIDE = TOP / "tests" / "whole" / "spack_drift_inside.py"
ROWS = YAML(typ="safe").load(MENDS / "mends.yaml")["mends"]
# One of each kind: both MPIs, a package of builtin's over one, a mend, and what is not ours.
SAMPLE = {
    "mvapich": "mvapich_stack",
    "mvapich2@2.3.7-2": "mvapich_stack",
    "hdf5 ^mvapich netmod=ofi fabrics=tcp": "builtin",
    "scalasca ^mvapich": "mvapich_stack_mends",
    "zlib": "builtin",
}
VERSIONS = ("pinned", "release", "develop", "develop in Spack's develop")


@pytest.fixture(scope="module", params=VERSIONS)
def there(request, tmp_path_factory):
    """What Spack answers there: (version's name, the clone of spack-packages, the answers)."""
    stock = Stock(tmp_path_factory.mktemp("stock"), newest="Spack" in request.param)
    name = "the pinned release"
    if request.param != "pinned":
        name, stock.packages = clone_of(stock.kept, request.param.split()[0])
    name += f" in {stock.name}"
    stock.takes(stock.packages)
    for repository in (MENDS, STACK):
        stock.run("repo", "add", str(repository))
    # The pinned ones are solved for by other tests.
    asked = {"mends": ROWS, "specs": [] if request.param == "pinned" else list(SAMPLE)}
    said = stock.run("python", str(INSIDE), json.dumps(asked))
    (line,) = [one for one in said.splitlines() if one.startswith("{")]
    return request.param, name, stock.packages, json.loads(line)


def test_every_recipe_loads_and_passes_the_audit(there):
    _, name, _, answers = there
    assert answers["broke"] == {}, f"these do not load over {name}"
    assert answers["audit"] == [], f"spack audit over {name}"


def test_the_mends_that_upstream_has_made_are_recorded(there):
    which, name, _, answers = there
    recorded = sorted(one for one, row in ROWS.items() if "until" in row)
    if which == "pinned":
        recorded = []  # a mend that is over here is taken away: test_spack_mends.py
    assert answers["over"] == recorded, f"mended by {name}: say it in mends.yaml, as `until`"


def test_the_recipes_keep_upstreams_style(there):
    _, name, packages, _ = there
    rules = tomllib.loads((packages / "pyproject.toml").read_text())["tool"]["ruff"]
    if "lint" not in rules:
        pytest.skip(f"{name} is of before ruff: its flake8, isort and black ask for no more")
    ruff = [sys.executable, "-m", "ruff"]
    given = ["--config", str(packages / "pyproject.toml"), "--no-cache", str(REPOSITORIES)]
    # The rules that it names and ruff's of that time: newer ruffs have more by default.
    chosen = ["--select", ",".join(["E4", "E7", "E9", "F", *rules["lint"]["extend-select"]])]
    chosen += ["--ignore", ",".join(rules["lint"]["ignore"])]
    for words in (["check", "--no-fix", *chosen], ["format", "--check"]):
        done = subprocess.run([*ruff, *words, *given], capture_output=True, text=True, cwd=TOP)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_sample_concretizes(there):
    _, name, _, answers = there
    for text, found in answers["solved"].items():
        assert "error" not in found, f"{text} over {name}\n{found}"
        assert found["namespace"] == SAMPLE[text], f"{text} over {name}\n{found}"
