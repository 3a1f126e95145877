"""Stands for the spack program: solves, installs and answers as told by a file, in milliseconds.

    fake.py FOLDER [-c …] -e ENVIRONMENT python SCRIPT [REQUEST ANSWER]
    fake.py FOLDER [-c …] -e ENVIRONMENT install [--use-buildcache HOW] [/HASH…]

FOLDER holds store (a path), lock.json (what the solver answers), and scripts that are run once,
before or after a package is installed: before-NAME, after-NAME.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Do what one command line says."""
    top, words = Path(sys.argv[1]), sys.argv[2:]
    words = words[words.index("-e") + 1 :]
    environment, command = Path(words[0]), words[1]
    with (top / "calls").open("a") as calls:
        calls.write(" ".join([command, *(Path(word).name for word in words[2:3])]) + "\n")
    if command == "install":
        only = {word[1:] for word in words[2:] if word.startswith("/")}
        return install(top, environment, only)
    script = Path(words[2]).name
    if script == "concretize.py":
        (environment / "spack.lock").write_text((top / "lock.json").read_text())
        return run(top, "after-concretize")
    request = json.loads(Path(words[3]).read_text())
    if script == "sources.py":
        found: dict[str, object] = {"sources": [], "others": []}
    else:
        prefixes = {part["key"]: str(store(top) / part["hash"]) for part in request["parts"]}
        found = {
            key: {
                "prefix": prefix,
                "homepage": "https://example.org",
                "changes": [["prepend_path", "PATH", f"{prefix}/bin", ":"]],
                "transport": ["/opt/fabric/lib"],
            }
            for key, prefix in prefixes.items()
        }
    Path(words[4]).write_text(json.dumps(found))
    return run(top, f"after-{script}")


def store(top: Path) -> Path:
    """Where packages are installed."""
    return Path((top / "store").read_text())


def install(top: Path, environment: Path, only: set[str]) -> int:
    """Install what the lock has and the database has not, in the lock's order.

    With ``only`` these alone, and what they stand on.
    """
    index = store(top) / ".spack-db" / "index.json"
    done = json.loads(index.read_text())["database"]["installs"] if index.is_file() else {}
    specs = json.loads((environment / "spack.lock").read_text())["concrete_specs"]
    for key in reversed(specs if only else {}):  # what stands on others comes after them
        if key in only:
            only |= {row["hash"] for row in specs[key]["dependencies"]}
    todo = [key for key, row in specs.items() if key not in done and "external" not in row]
    todo = [key for key in todo if not only or key in only]
    failed = 0
    for number, key in enumerate(todo, 1):
        name = specs[key]["name"]
        if failed and name == "hpcc":
            continue  # stands on what failed
        print(f"==> Installing {name}-1-{key} [{number}/{len(todo)}]", flush=True)
        print(f"==> {name}: Executing phase: 'build'", flush=True)
        if status := run(top, f"before-{name}"):
            log = store(top) / f"{name}-{key}" / "spack-build-out.txt"
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text("gcc -c a.c\na.c:1: error: no luck\nmake: *** [a.o] Error 1\n")
            print(f"==> Error: ProcessError: Command exited with status {status}:")
            print(f"See build log for details:\n  {log}\n")
            print(f"==> Warning: {name}-1-{key} failed to install", flush=True)
            failed = 1
            continue
        done[key] = {"installed": True, "path": str(store(top) / key)}
        index.parent.mkdir(parents=True, exist_ok=True)
        index.write_text(json.dumps({"database": {"installs": done}}))
        print(f"==> {name}: Successfully installed {name}-1-{key}")
        print("  Stage: 0.10s.  Build: 1.20s.  Total: 1.30s", flush=True)
        run(top, f"after-{name}")
    return failed


def run(top: Path, name: str) -> int:
    """Run a script of that name once; its status, 0 when there is none."""
    script = top / name
    if not script.is_file():
        return 0
    text = script.read_text()
    script.unlink()
    return subprocess.run(["bash", "-c", text], env=os.environ, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
