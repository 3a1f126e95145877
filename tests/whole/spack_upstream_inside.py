"""Runs inside a stock Spack over a patched spack-packages: do the patched recipes load and solve?

The words after the file: the names with commas between, and the specs. Prints JSON: what the audit
found, and for each spec the namespace and the MPI of its answer, and the C++ flags of its recipe.
"""

import json
import sys

import spack.audit
import spack.concretize
import spack.repo
import spack.spec

words = sys.argv[sys.argv.index("--") + 1 :]
names, specs = words[0].split(","), words[1:]
for name in names:
    spack.repo.PATH.get_pkg_class(name)
findings = [
    f"{tag}: {error.summary} {error.details}"
    for tag, errors in spack.audit.run_group("packages", pkgs=names)
    for error in errors
]
answers = {}
for text in specs:
    root = spack.concretize.concretize_one(spack.spec.Spec(text))
    mpi = root if root.package.provides("mpi") else root["mpi"]
    flags = root.package.flag_handler("cxxflags", [])[0] or []
    answers[text] = " ".join([mpi.format("{namespace}.{name}{@version}{variants}"), *flags])
print(json.dumps({"audit": findings, "answers": answers}))
