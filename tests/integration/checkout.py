"""A checkout for a test of the launcher: launcher and set-up script, over pins of its own."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import signal
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]

# What stands for src/mvstack there: says how it was called. The launcher is the real one.
SAYS_HOW_IT_WAS_CALLED = """
import json, os, pathlib, sys
import tinydep
print(json.dumps({"arguments": sys.argv[1:], "cwd": os.getcwd(), "dep": tinydep.__file__,
                  "mvstack": str(pathlib.Path(__file__).parent), "prefix": sys.prefix}))
"""


def _hear_hangups() -> None:
    """In the child: nohup hands SIGHUP on as ignored, and bash cannot undo that."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class Checkout:
    """The launcher and its set-up script, as they are, over pins that need no network."""

    def __init__(self, folder: Path, wheels: Path) -> None:
        self.top, self.wheels = folder, wheels
        (folder / "requirements").mkdir(parents=True)
        shutil.copy2(TOP / "mvstack", folder)
        for name in ("setup.sh", "fetch_pip.py", "pip.txt"):
            shutil.copy2(TOP / "requirements" / name, folder / "requirements")
        package = folder / "src" / "mvstack"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "__main__.py").write_text(SAYS_HOW_IT_WAS_CALLED)
        wheels.mkdir()
        self.pin("1.0")
        (folder / "requirements" / "build.txt").touch()

    @property
    def venv(self) -> Path:
        return self.top / ".venv"

    def pin(self, version: str) -> None:
        """Publishes ``tinydep`` at this version and pins it by its hash."""
        digest = make_wheel(self.wheels, "tinydep", version)
        for name in ("core.txt", "runtime.txt"):
            (self.top / "requirements" / name).write_text(
                f"tinydep=={version} \\\n    --hash=sha256:{digest}\n"
            )

    def environment(self, **changes: str) -> dict[str, str]:
        """This process's, without pip's settings and with ours; an empty value takes one out."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "MVSTACK_"))}
        kept |= {
            "TMPDIR": str(self.wheels.parent),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
            "PIP_NO_CACHE_DIR": "1",
        }
        return {k: v for k, v in (kept | changes).items() if v}

    def start(
        self, *words: str, prefix: Sequence[str] = (), cwd: Path | None = None, **changes: str
    ) -> subprocess.Popen[str]:
        """Begins ``./mvstack WORD…``; both outputs are pipes."""
        return subprocess.Popen(
            [*prefix, str(self.top / "mvstack"), *words],
            cwd=cwd,
            env=self.environment(**changes),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_hear_hangups,
        )

    def run(
        self, *words: str, prefix: Sequence[str] = (), cwd: Path | None = None, **changes: str
    ) -> subprocess.CompletedProcess[str]:
        """``./mvstack WORD…``, to its end."""
        process = self.start(*words, prefix=prefix, cwd=cwd, **changes)
        out, err = process.communicate(timeout=120)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def make_wheel(folder: Path, name: str, version: str) -> str:
    """Writes a wheel with one empty-handed module; the hash of the file."""
    about = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"version = {version!r}\n",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": f"[console_scripts]\n{name} = {name}:version.upper\n",
    }
    rows = [
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip('=')},"
        for path, text in files.items()
    ]
    files[f"{about}/RECORD"] = "\n".join([*rows, f"{about}/RECORD,,"]) + "\n"
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return hashlib.sha256(wheel.read_bytes()).hexdigest()
