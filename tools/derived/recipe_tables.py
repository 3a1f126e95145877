"""What the Spack recipe `mvapich` knows of fabrics, made from the policy's rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet
from recipes.reading import RECIPES

from mvstack.model.policy import Policy
from mvstack.support.errors import InvalidInput, relative

FILE = RECIPES / "mvapich" / "package.py"
# Spack's package hash is of package.py alone: what decides a build stands in it.
BEGIN = (
    "# BEGIN of what `mvstack render` writes, from environments/policy/fabrics.yaml: do not edit.\n"
)
END = "# END of what `mvstack render` writes.\n"
HEAD = """\
# What the transport beneath must have been built with, so that a fabric is driven and not quietly
# replaced by TCP. "shm" and "tcp" come along: ranks of one node, and the way to start.
"""


def fabric_tables(policy: Policy) -> dict[Path, str]:
    """The recipe, with its tables of fabrics made anew."""
    rows = {name: row for name, row in policy.fabrics.items() if row.libfabric}
    ofi = {name: row.libfabric for name, row in rows.items() if row.libfabric}
    ucx = {name: row.ucx for name, row in rows.items() if row.ucx}
    embedded = {
        library: {
            name: (tuple(one.embedded.needs), one.embedded.proof)
            for name, one in beneath.items()
            if one.embedded
        }
        for library, beneath in (("libfabric", ofi), ("ucx", ucx))
    }
    providers = {name: one.provider for name, one in ofi.items() if one.provider}
    sets = {
        netmod: {
            name: {
                variable: setting.value
                for variable, setting in one.environment.items()
                # of the versions that the recipe builds; 3.0 has a variable of its own besides
                if SpecifierSet(setting.when.version or "").contains("4.1")
            }
            for name, one in beneath.items()
            if one.environment
        }
        for netmod, beneath in (("ofi", ofi), ("ucx", ucx))
    }
    parts = [
        f"LIBFABRIC = {_written({name: one.variants for name, one in ofi.items()})}\n",
        f"UCX = {_written({name: one.variants for name, one in ucx.items()})}\n",
        "\n# What FI_PROVIDER says where one fabric is asked of netmod=ofi.\n",
        f"PROVIDER = {_written(providers)}\n",
        "\n# What else a program's environment needs where one fabric is asked of a netmod.\n",
        f"SETS = {_written(sets)}\n",
        "\n# What an embedded library needs of others for a fabric, and the word in its config.h\n"
        "# that proves that it found it: both build what they find and go on without the rest.\n",
        f"EMBEDDED = {_written(embedded)}\n",
    ]
    before, _, rest = FILE.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise InvalidInput(
            "the recipe has no place for its tables of fabrics",
            relative(FILE),
            todo=f"add these two lines after the imports: {BEGIN.strip()} {END.strip()}",
        )
    return {FILE: before + BEGIN + HEAD + "".join(parts) + END + after}


def _written(value: Any, indent: str = "") -> str:
    """``value`` in Python, a row of a mapping on each line, down to what is said of a fabric."""
    if isinstance(value, dict) and len(indent) < 8:
        deeper = indent + "    "
        rows = [
            f"{deeper}{_written(key)}: {_written(one, deeper)},\n" for key, one in value.items()
        ]
        return f"{{\n{''.join(rows)}{indent}}}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_written, value))}{',' if len(value) == 1 else ''})"
    return json.dumps(value)  # what JSON writes of plain text is Python in double quotes
