"""Runs inside a stock Spack over a patched spack-packages: do the patched recipes load and solve?

The words after the file: the names with commas between, and a spec. Prints JSON.
"""

import json
import sys

import spack.audit
import spack.concretize
import spack.repo
import spack.spec

names, text = sys.argv[-2].split(","), sys.argv[-1]
for name in names:
    spack.repo.PATH.get_pkg_class(name)
findings = [
    f"{tag}: {error.summary} {error.details}"
    for tag, errors in spack.audit.run_group("packages", pkgs=names)
    for error in errors
]
root = spack.concretize.concretize_one(spack.spec.Spec(text))
words = root.format("{name}{@version}{variants}")
print(json.dumps({"audit": findings, "namespace": root.namespace, "root": words}))
