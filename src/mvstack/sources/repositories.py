"""A source that EasyBuild packs from a git repository, after ``git_config`` of its recipe."""

import json
import sys
from pathlib import Path

from mvstack.sources.download import CONNECT, NotHere
from mvstack.sources.spec import SourceSpec
from mvstack.support import git
from mvstack.support.errors import Missing
from mvstack.support.processes import run

SECONDS = 1800.0  # that a clone may take
# EasyBuild clones and packs: the hash that a recipe lists is of its very bytes.
_PACK = """
import json, sys
from easybuild.tools.filetools import get_source_tarball_from_git
from easybuild.tools.options import set_up_configuration
from easybuild.tools.run import RunShellCmdError
set_up_configuration(args=["--allow-use-as-root-and-accept-consequences"], silent=True)
try:
    get_source_tarball_from_git(*json.loads(sys.argv[1]))
except RunShellCmdError as error:
    sys.exit(f"{error.output}{error.stderr or ''}")
"""


def repository(spec: SourceSpec) -> str:
    """The URL of the repository that the file of ``spec`` is packed from; "" for other files."""
    return f"{spec.git['url'].rstrip('/')}/{spec.git['repo_name']}.git" if spec.git else ""


def answers(url: str) -> bool:
    """Whether git can ask the repository ``url``, in a few seconds."""
    try:
        return git.git(Path("/"), "ls-remote", url, "HEAD", limit=2 * CONNECT).ok
    except Missing:
        return False


def packed(spec: SourceSpec, folder: Path) -> Path:
    """The file of ``spec``, cloned and packed into ``folder``. Raises NotHere with git's words."""
    given = json.dumps([spec.filename, str(folder / "packed"), spec.git])
    command = [sys.executable, "-P", "-c", _PACK, given]
    env = {**git.environment(), "COLUMNS": "4000", "XDG_CONFIG_HOME": str(folder)}
    done = run(command, env=env, limit=SECONDS)
    if done.ok:
        return folder / "packed" / spec.filename
    lines = [line for line in done.said.splitlines() if line.strip()]
    said = [line for line in lines if line.startswith("fatal:")] or lines[-1:] or ["git failed"]
    why = f"git took more than {SECONDS:.0f} s" if done.timed_out else said[0].strip()
    raise NotHere(f"{repository(spec)}: {why}")
