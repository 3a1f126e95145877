"""Renders N generated systems and prints how long each step took, as JSON.

A process of its own for each N (``measure.py`` starts it), so that its memory is that of N alone.
The systems are those of the repository in turn, each under a name of its own, written to a
temporary folder, then read, planned and rendered as any other.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from pathlib import Path

from ruamel.yaml import YAML

from mvstack.model.load import load_policy, load_release, load_system, system_names
from mvstack.plan.make import make_plan
from mvstack.render.partition import render
from mvstack.support.home import DATA


def generate(count: int, folder: Path) -> list[Path]:
    """``count`` system files below ``folder``, like those of the repository."""
    yaml = YAML()
    texts = []
    for name in system_names():
        system = yaml.load(DATA / "environments" / "systems" / f"{name}.yaml")
        if not system.get("discover"):
            texts.append(system)
    paths = []
    for number in range(count):
        system = texts[number % len(texts)]
        system["name"] = f"generated-{number}"
        paths.append(folder / f"generated-{number}.yaml")
        yaml.dump(system, paths[-1])
    return paths


def main() -> None:
    count = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        paths = generate(count, Path(folder))
        begin = time.perf_counter()
        release, policy = load_release(), load_policy()
        policy_read = time.perf_counter()
        systems = [load_system(str(path)) for path in paths]
        read = time.perf_counter()
        plans = [make_plan(s, part, release, policy) for s in systems for part in s.partitions]
        planned = time.perf_counter()
        texts = [render(plan) for plan in plans]
        rendered = time.perf_counter()
    print(
        json.dumps(
            {
                "systems": count,
                "partitions": len(plans),
                "files": sum(map(len, texts)),
                "policy_s": policy_read - begin,
                "read_s": read - policy_read,
                "plan_s": planned - read,
                "render_s": rendered - planned,
                "total_s": rendered - begin,
                "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }
        )
    )


if __name__ == "__main__":
    main()
