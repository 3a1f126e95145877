"""Runs on a machine started from an image: the release's checks, by the image's own Python.

    python3 -m mvstack.image.inside TREE OUT [TAG…]

Started by `mvstack image test`, which brings this package and ReFrame along for its time.
"""

import json
import sys
from pathlib import Path

from mvstack.support.errors import CheckFailed
from mvstack.test.run import run_checks


def main(arguments: list[str]) -> int:
    """Run the checks; 0 when all passed, 1 else. OUT/results.json says which."""
    tree, out = Path(arguments[0]), Path(arguments[1])
    plan = json.loads((tree / "records" / "plan.json").read_text())
    try:
        results = run_checks(plan, out, arguments[2:], print)
    except CheckFailed as error:
        print(error, file=sys.stderr)
        return 1
    return int(any(case["result"] not in ("pass", "skip") for case in results["cases"]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
