"""A package repository whose `mvapich` is ours with another tarball: not upstream's bytes.

Where upstream cannot be reached, a tarball made from the public import of its source can be built.
It has another hash, which no recipe here holds. So whoever accepts it says the hash, and this makes
a repository of its own namespace around it, outside the checkout.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools" / "derived"))
from recipes_record import recipe_hash  # of the tool that reads what is recorded

NAMESPACE = "mvapich_stack_accepted"

RECIPE = '''"""{name} from accepted bytes that are not upstream's."""

from spack_repo.mvapich_stack.packages.{module}.package import {klass} as Upstreams

from spack.package import *


class {klass}(Upstreams):
    """{name} with the hashes of accepted tarballs."""

    recipe = "{recipe}"  # else Spack takes what another recipe built for this one's
{versions}
'''


def make_overlay(folder: Path, accepted: dict[tuple[str, str], str]) -> Path:
    """The repository's folder; `accepted`: (package, version) → sha256 of the tarball.

    ValueError when a hash is none.
    """
    top = folder / "spack_repo" / NAMESPACE
    top.mkdir(parents=True, exist_ok=True)
    (top / "repo.yaml").write_text(f"repo:\n  namespace: {NAMESPACE}\n  api: v2.2\n")
    by_name: dict[str, list[str]] = {}
    for (name, version), sha256 in sorted(accepted.items()):
        if not re.fullmatch("[0-9a-f]{64}", sha256):
            raise ValueError(f"{name}@{version}: not a sha256: {sha256!r}")
        by_name.setdefault(name, []).append(f'    version("{version}", sha256="{sha256}")')
    for name, versions in by_name.items():
        module = name.replace("-", "_")
        package = top / "packages" / module
        package.mkdir(parents=True, exist_ok=True)
        klass = "".join(part.capitalize() for part in name.split("-"))
        (package / "package.py").write_text(
            RECIPE.format(
                name=name,
                module=module,
                klass=klass,
                recipe=recipe_hash(name, "built"),
                versions="\n".join(versions),
            )
        )
    return top
