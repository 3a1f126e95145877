"""Run one build through mvstack.image.packer and say how it ended, as the command line does.

    python build.py REQUEST.json

The request names the folder for templates and log, the source, and the variables. Exit code: 0, the
error's own, or 130 when it was interrupted.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import old_packer

from mvstack.image import packer
from mvstack.support.errors import MvstackError


def main() -> int:
    # whoever started us may have had Ctrl-C ignored, as a shell's background jobs have
    signal.signal(signal.SIGINT, signal.default_int_handler)
    request = json.loads(Path(sys.argv[1]).read_text())
    folder, variables = Path(request["folder"]), request["variables"]
    try:
        packer.prepare(folder / "templates")
        old_packer.adapt(folder / "templates")
        made = packer.build(
            folder / "templates",
            request["source"],
            [],
            variables,
            folder / "packer.log",
            lambda line: print(line, flush=True),
        )
    except MvstackError as error:
        print(f"{error.title}: {error}", flush=True)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        return 130
    print("made:", ", ".join(one["artifact_id"] for one in made), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
