"""Spack as it is run for one tree: our configuration, nothing of ~/.spack or of the site's."""

import json
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mvstack.builders.following import inherited
from mvstack.builders.spack.clone import Clones
from mvstack.builders.spack.repositories import cache_of, prepare
from mvstack.cache import gpg
from mvstack.plan.spack import own_repositories, site_repositories
from mvstack.support.files import write_atomically


@dataclass(frozen=True)
class Isolated:
    """One tree's Spack.

    ``state`` is where its configuration is written; ``store`` where packages are installed;
    ``root`` the install root, whose source mirror, caches and keys are shared by all trees.
    ``repos`` are package repositories before ours (namespace → folder), ``mirrors`` more mirrors
    than the source mirror of ``root``, ``marks`` more variables for every process.
    """

    clones: Clones
    python: Path
    state: Path
    store: Path
    root: Path
    jobs: int | None = None
    repos: Mapping[str, Path] = field(default_factory=dict)
    mirrors: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    marks: Mapping[str, str] = field(default_factory=dict)

    @property
    def config(self) -> Path:
        """The folder of our configuration scope."""
        return self.state / "config"

    @property
    def stage(self) -> Path:
        """Where packages are compiled."""
        return self.state / "stage"

    @property
    def repositories(self) -> dict[str, Path]:
        """The package repositories, the first to be asked first: namespace → folder."""
        builtin = {"builtin": self.clones.builtin}
        return {**self.repos, **site_repositories(), **own_repositories(), **builtin}

    @property
    def indexes(self) -> Path:
        """The cache of Spack's indexes of these repositories as they are now."""
        # of builtin the commit is pinned, and proved: it is the same for all caches of this folder
        ours = {name: path for name, path in self.repositories.items() if name != "builtin"}
        return cache_of(self.clones.home / "cache", ours)

    def files(self) -> dict[str, Any]:
        """Our configuration scope: file name → what stands in it."""
        config: dict[str, Any] = {
            "install_tree": {"root": str(self.store)},
            "build_stage": [str(self.stage)],
            "test_stage": str(self.state / "test"),
            "source_cache": str(self.root / "spack" / "source-cache"),
            "misc_cache": str(self.indexes),
            "ccache": shutil.which("ccache") is not None,
            "connect_timeout": 10,
        }
        if self.jobs:
            config["build_jobs"] = self.jobs
        repos = {name: str(folder) for name, folder in self.repositories.items()}
        sources = {"url": f"file://{self.root}/sources", "source": True, "binary": False}
        # the solver comes with our Python; nothing else is ever fetched behind our back
        bootstrap = {"enable": True, "root": str(self.clones.home / "bootstrap"), "sources": []}
        return {
            "config.yaml": {"config": config},
            # two colons: instead of what Spack brings along, which would be cloned
            "repos.yaml": {"repos:": repos},
            "mirrors.yaml": {"mirrors:": {**self.mirrors, "mvapich-stack-sources": sources}},
            "bootstrap.yaml": {"bootstrap": bootstrap},
            "concretizer.yaml": {
                # the answer is the same, a fifth sooner: what cannot be needed is not looked at
                "concretizer": {
                    "static_analysis": True,
                    # an answer that is kept has the hashes of recipes as they were, and gives a
                    # root the package of another (seen with Spack 1.1.0)
                    "concretization_cache": {"enable": False},
                }
            },
        }

    def write(self) -> None:
        """Write the scope, and ``env.sh`` for a person who wants this very Spack by hand."""
        (self.state / "no-config").mkdir(parents=True, exist_ok=True)
        prepare(self.indexes, pinned=["builtin"])
        for name, data in self.files().items():
            # JSON is YAML, and holds no surprises
            write_atomically(self.config / name, json.dumps(data, indent=1) + "\n")
        lines = [f"export {key}={shlex.quote(value)}" for key, value in self.settings().items()]
        lines += [f"export PATH={shlex.quote(str(self.clones.spack / 'bin'))}:$PATH"]
        head = (
            "# Written by mvstack: the Spack of this tree, isolated. source it, then: spack find\n"
        )
        write_atomically(self.state / "env.sh", head + "\n".join(lines) + "\n")

    def settings(self) -> dict[str, str]:
        """What makes a Spack this one."""
        return {
            # not SPACK_DISABLE_LOCAL_CONFIG: it disables SPACK_USER_CONFIG_PATH too
            "SPACK_SYSTEM_CONFIG_PATH": str(self.state / "no-config"),
            "SPACK_USER_CONFIG_PATH": str(self.config),
            "SPACK_USER_CACHE_PATH": str(self.clones.home / "cache"),
            "SPACK_PYTHON": str(self.python),
            "SPACK_GNUPGHOME": str(gpg.home()),
            "CCACHE_DIR": str(self.root / "ccache"),
        }

    def environment(self) -> dict[str, str]:
        """The environment of every spack command."""
        kept = inherited("SPACK_", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP")
        return {**kept, **self.settings(), **self.marks, "PYTHONUNBUFFERED": "1", "NO_COLOR": "1"}

    def command(self, *words: str) -> list[str]:
        """The command line of one spack command.

        Our store goes over the environment's own, which names the folder of its system: a lock of
        another system must not make that folder here.
        """
        store = ("-c", f"config:install_tree:root:{self.store}")
        return [str(self.python), str(self.clones.spack / "bin" / "spack"), *store, *words]
