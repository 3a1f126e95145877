"""The command line, variables and environment that gitlab-ci-local is started with."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ruamel.yaml import YAML

from gitlab.project import MAIN, ZEROS, Project

STATE = ".gitlab-ci-local"
HERE = Path(__file__).parent
# The way to the network that this machine has: a job gets these of the environment, and no others.
NETWORK = re.compile(
    r"(https?|no)_proxy|PIP_\w+|(SSL|CURL|REQUESTS|NODE)_\w*CERT\w*|\w+_CA_BUNDLE", re.I
)
OPTIONS = (
    *("--shell-isolation", "--force-shell-executor", "--no-artifacts-to-source"),
    *("--max-job-name-padding", "0"),  # so that a line begins with exactly the job's name
)


@dataclass(frozen=True)
class Setting:
    """What a pipeline is run with; the same for it and for its child pipelines."""

    project: Project
    source: str
    variables: Mapping[str, str]
    file_variables: Mapping[str, str]
    fork: bool
    protected: bool | None
    environment: Mapping[str, str] = field(default_factory=dict)
    file: str = ".gitlab-ci.yml"

    def predefined(self) -> dict[str, str]:
        """What GitLab sets and gitlab-ci-local does not, or not so."""
        branch = self.project.on
        of_request = self.source == "merge_request_event"
        protected = branch == MAIN and not of_request
        if self.protected is not None:
            protected = self.protected
        found = {
            "GITLAB_CI": "true",
            "CI_COMMIT_BEFORE_SHA": ZEROS if of_request else self.project.before,
            "CI_COMMIT_REF_PROTECTED": "true" if protected else "false",
        }
        if of_request:
            prefix = "CI_MERGE_REQUEST_"
            mine, target = self.project.name, MAIN
            found |= {
                f"{prefix}IID": "1",
                f"{prefix}ID": "1001",
                f"{prefix}EVENT_TYPE": "detached",
                f"{prefix}PROJECT_PATH": mine,
                f"{prefix}SOURCE_PROJECT_PATH": f"fork-of/{mine}" if self.fork else mine,
                f"{prefix}SOURCE_BRANCH_NAME": branch,
                f"{prefix}TARGET_BRANCH_NAME": target,
                f"{prefix}TARGET_BRANCH_PROTECTED": "true",
                f"{prefix}DIFF_BASE_SHA": self.project.git(
                    "merge-base", f"origin/{target}", "HEAD"
                ),
            }
        return found

    def write_variables(self) -> None:
        """The file that gitlab-ci-local takes variables from, for child pipelines too."""
        plain = {**self.predefined(), **self.variables}
        entries: dict[str, object] = {
            # not `name: value`: one that begins with / would be taken for a file's path
            name: {"type": "variable", "values": {"*": value}}
            for name, value in plain.items()
        }
        entries |= {
            name: {"type": "file", "values": {"*": content}}
            for name, content in self.file_variables.items()
        }
        path = self.project.server.home / STATE / "variables.yml"
        path.parent.mkdir(exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            YAML(typ="safe").dump({"global": entries}, file)

    def words(self, path: Sequence[str] = (), handed: Mapping[str, str] | None = None) -> list[str]:
        """Options for the pipeline that the trigger jobs of ``path`` lead to."""
        words = list(OPTIONS)
        overridden = [*self.predefined(), *self.variables, "CI_PIPELINE_SOURCE"]
        words += ["--ignore-predefined-vars", ",".join(overridden)]
        if self.source == "merge_request_event":
            words += ["--unset-variable", "CI_COMMIT_BRANCH"]
        if path:
            words += ["--file", f"{STATE}/includes/triggers/{path[-1]}.yml"]
            words += ["--variable", f"GCL_TRIGGERER={' -> '.join(path)}"]
        else:
            words += ["--file", self.file]
        source = "parent_pipeline" if path else self.source
        for name, value in {"CI_PIPELINE_SOURCE": source, **(handed or {})}.items():
            words += ["--variable", f"{name}={value}"]
        return words

    def clean(self, program: Path) -> dict[str, str]:
        """The environment of gitlab-ci-local, without anything of the pipeline that runs this."""
        kept = {name: value for name, value in os.environ.items() if NETWORK.fullmatch(name)}
        path = os.environ.get("PATH", os.defpath)
        return {
            **kept,
            "HOME": str(self.project.server.home),
            "LANG": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
            "TMPDIR": os.environ.get("TMPDIR", "/tmp"),
            **self.environment,
            "PATH": f"{self.environment.get('PATH', path)}:{program.parent}",
        }


def recorded(environment: Mapping[str, str], folder: Path, records: Path) -> dict[str, str]:
    """The environment in which `bash` is our own that keeps records; ``folder`` is for its link."""
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / "bash"
    if not link.is_symlink():
        link.symlink_to(HERE / "bash-recorded")
    return {
        **environment,
        "PATH": f"{folder}:{environment['PATH']}",
        "MVSTACK_RECORDER": str(folder),
        "MVSTACK_RECORDS": str(records),
    }


def manual(names: Iterable[str]) -> list[str]:
    """Options that let manual jobs run."""
    return [word for name in names for word in ("--manual", name)]
