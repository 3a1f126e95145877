"""Runs inside Spack: concretizes specs one by one in one process.

    spack python tests/spack/concretize_all.py SPECS.json FOLDER

SPECS.json: a list of [id, spec]. For each row FOLDER gets <id>.answer.json with "seconds" and
either "error" (the solver's words) or "hash", "spec", "packages" (how many nodes the answer has)
and "args" (configure_args of the root), and <id>.spec.json, which `spack install` takes without
solving again.
"""

import json
import sys
import time
from pathlib import Path

import spack.concretize
import spack.config
import spack.error
import spack.spec

specs_file, folder = (Path(word) for word in sys.argv[-2:])
for name, asked in json.loads(specs_file.read_text()):
    begun = time.time()
    answer = {"asked": asked}
    try:
        # what is installed already would be taken for whatever it fits, e.g. ch4:ofi for mvapich
        with spack.config.override("concretizer:reuse", False):
            concrete = spack.concretize.concretize_one(spack.spec.Spec(asked))
        answer["hash"] = concrete.dag_hash()
        answer["spec"] = concrete.format("{name}{@version}{variants}").strip()
        answer["packages"] = sum(1 for _ in concrete.traverse())
        arguments = getattr(concrete.package, "configure_args", None)
        answer["args"] = arguments() if arguments else []
        with (folder / f"{name}.spec.json").open("w") as out:
            concrete.to_json(out)
    except spack.error.SpackError as err:
        answer["error"] = f"{err}\n{err.long_message or ''}".strip()
    answer["seconds"] = round(time.time() - begun, 1)
    # In the end under its name: a row that is there is whole.
    partial = folder / f"{name}.partial"
    partial.write_text(json.dumps(answer, indent=1))
    partial.replace(folder / f"{name}.answer.json")
    print(name, answer.get("hash", "refused"), answer["seconds"], "s", flush=True)
