"""Bytes that a person accepted in place of upstream's, as a package repository over ours. Pure."""

from mvstack.plan.types import MpiBuild, Plan
from mvstack.render.templates import generated
from mvstack.support.units import one_line

NAMESPACE = "mvapich_stack_accepted"
FOLDER = f"repo-accepted/spack_repo/{NAMESPACE}"

REPO = """\
# {generated}
repo:
  namespace: {namespace}
  api: v2.2
"""
RECIPE = '''\
# {generated}
"""{product} with the bytes that were accepted here in place of upstream's."""

from spack_repo.mvapich_stack.packages.{folder}.package import {name} as Ours

from spack.package import *


class {name}(Ours):
    __doc__ = Ours.__doc__

    # not upstream's bytes: {why}
    version("{version}", sha256="{sha256}", preferred=True)
'''


def overlay(plan: Plan) -> dict[str, str]:
    """The files of the overlay, by name below the rendered folder; none when nothing was accepted.

    Each recipe inherits ours and has one version more exactly said: the same, with the hash that
    was accepted. It is the user's state and is never committed.
    """
    builds = {(build.product, build.version): build for build in plan.mpi if build.accepted_sha256}
    if not builds:
        return {}
    files = {
        f"spack/{FOLDER}/repo.yaml": REPO.format(generated=generated(plan), namespace=NAMESPACE)
    }
    for build in builds.values():
        folder = build.product.replace("-", "_")
        files[f"spack/{FOLDER}/packages/{folder}/package.py"] = _recipe(plan, build, folder)
    return files


def _recipe(plan: Plan, build: MpiBuild, folder: str) -> str:
    return RECIPE.format(
        generated=generated(plan),
        product=build.product,
        folder=folder,
        name="".join(part.capitalize() for part in build.product.split("-")),
        version=build.version,
        sha256=build.accepted_sha256,
        # a line of its own in a Python file: nothing in it may end the line
        why=one_line(build.not_upstream),
    )
