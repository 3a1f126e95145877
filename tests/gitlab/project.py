"""A GitLab project on this machine: a work tree whose origin is a bare repository beside it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

HOST = "gitlab.example.org"
MAIN = "main"
ZEROS = "0" * 40
Files = Mapping[str, str | bytes | Path]
# Never part of a project that is a copy of a folder.
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis")
GITCONFIG = f"""\
[user]
	name = Somebody
	email = somebody@{HOST}
[init]
	defaultBranch = {MAIN}
[core]
	sshCommand = {{server}}/ssh-here
[ssh]
	variant = ssh
[uploadArchive]
	allowUnreachable = true
[url "{{server}}/"]
	insteadOf = https://{HOST}/
[safe]
	directory = *
"""


class Server:
    """The bare repositories of a GitLab, and a home in which git finds them by its addresses.

    ``git@gitlab.example.org:NAME.git`` and ``https://gitlab.example.org/NAME.git`` are
    ``folder/NAME.git``, for git itself, for jobs, and for `include: project`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        here = Path(__file__).parent / "ssh-here"
        shutil.copy(here, folder / "ssh-here")
        (self.home / ".gitconfig").write_text(GITCONFIG.format(server=folder), encoding="utf-8")

    def repository(self, name: str) -> Path:
        """Where the bare repository of a project is, e.g. of ``hpc/site``."""
        return self.folder / f"{name}.git"


class Project:
    """A work tree on branch ``main`` with one commit, which its origin has too."""

    def __init__(
        self, folder: Path, files: Files, name: str = "hpc/site", server: Server | None = None
    ) -> None:
        """Make it in ``folder`` (which must not exist) of ``files``: path and content.

        A content that is a Path is copied, a folder with all below it. Projects that shall see
        each other's repositories share a ``server``; without one the project gets its own.
        """
        self.name = name
        self.folder = folder
        self.server = server or Server(folder.with_name(folder.name + "-server"))
        folder.mkdir(parents=True)
        self.git("init", "--quiet")
        exclude = folder / ".git" / "info" / "exclude"
        exclude.write_text("/.gitlab-ci-local/\n", encoding="utf-8")
        self.git("remote", "add", "origin", f"git@{HOST}:{name}.git")
        self.write(files)
        bare = self.server.repository(name)
        self.git("init", "--quiet", "--bare", str(bare))
        self.commit("first")
        self.push()
        self.git("remote", "set-head", "origin", MAIN)

    def git(self, *words: str) -> str:
        """What git prints, without the last line end; CalledProcessError holds its message."""
        environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", *words],
            cwd=self.folder,
            env={**environment, "HOME": str(self.server.home)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            error = subprocess.CalledProcessError(done.returncode, done.args)
            error.add_note(done.stderr)
            raise error
        return done.stdout.rstrip("\n")

    def write(self, files: Files) -> None:
        """Write files of the work tree; a text that begins with ``#!`` can be executed."""
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, Path) and content.is_dir():
                shutil.copytree(content, path, symlinks=True, ignore=LEFT_OUT, dirs_exist_ok=True)
            elif isinstance(content, Path):
                shutil.copy(content, path)
            else:
                data = content.encode() if isinstance(content, str) else content
                path.write_bytes(data)
                if data.startswith(b"#!"):
                    path.chmod(0o755)

    def commit(self, message: str, files: Files | None = None) -> str:
        """Commit all that is in the work tree, after writing ``files``; its hash."""
        self.write(files or {})
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        return self.head

    def branch(self, name: str) -> None:
        """Go to a branch; a new one begins at the commit that is checked out."""
        known = self.git("branch", "--list", name)
        self.git("checkout", "--quiet", *(() if known else ("-b",)), name)

    def push(self) -> None:
        """Give origin the branch that is checked out, and all tags: nothing is changed then."""
        self.git("push", "--quiet", "--tags", "origin", "HEAD")

    @property
    def head(self) -> str:
        """Hash of the commit that is checked out."""
        return self.git("rev-parse", "HEAD")

    @property
    def on(self) -> str:
        """The branch that is checked out."""
        return self.git("rev-parse", "--abbrev-ref", "HEAD")

    @property
    def before(self) -> str:
        """CI_COMMIT_BEFORE_SHA: what origin has of the branch, or zeros when it has none of it.

        The commit before the last one where origin has the same commit already.
        """
        pushed = self._hash(f"refs/remotes/origin/{self.on}")
        if pushed == self.head:
            pushed = self._hash("HEAD~1")
        return pushed or ZEROS

    def _hash(self, name: str) -> str:
        try:
            return self.git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        except subprocess.CalledProcessError:
            return ""
