"""Which jobs a pipeline has by its rules, asked of gitlab-ci-local without running them."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from gitlab.command import Setting

# The names of a matrix's jobs, as gitlab-ci-local writes them: `build: [x,1]`.
MATRIX = re.compile(r": \[.*\]$")


@dataclass(frozen=True)
class Planned:
    """A job of a pipeline, before anything ran."""

    name: str
    stage: str
    when: str
    allow_failure: bool | dict[str, Any]
    is_trigger: bool = False
    waits: bool = False  # a trigger job that takes the outcome of its pipeline for its own
    hands: dict[str, str] = field(default_factory=dict)  # variables for the pipeline it triggers

    def allows(self, status: int | None) -> bool:
        """Whether the pipeline goes on when the job ends with this exit status."""
        if isinstance(self.allow_failure, bool):
            return self.allow_failure
        codes = self.allow_failure["exit_codes"]
        return status in (codes if isinstance(codes, list) else [codes])


class Unreadable(Exception):
    """gitlab-ci-local could not read the pipeline; the text is what it said."""


def planned(
    tool: Sequence[str], setting: Setting, path: Sequence[str], handed: Mapping[str, str]
) -> list[Planned]:
    """The jobs of the pipeline that ``path`` leads to; raises Unreadable."""
    words = setting.words(path, handed)
    listed = json.loads(_ask(tool, setting, [*words, "--list-json"], "["))
    whole = YAML(typ="safe").load(preview(tool, setting, path, handed))
    found = []
    for one in listed:
        if one["when"] == "never":
            continue
        data = whole.get(MATRIX.sub("", one["name"])) or {}
        trigger = data.get("trigger")
        variables = {**(whole.get("variables") or {}), **(data.get("variables") or {})}
        found.append(
            Planned(
                name=one["name"],
                stage=one["stage"],
                when=one["when"],
                allow_failure=one["allow_failure"],
                is_trigger=trigger is not None,
                waits=isinstance(trigger, dict) and trigger.get("strategy") in ("depend", "mirror"),
                hands={name: _value(value) for name, value in variables.items()},
            )
        )
    return found


def preview(
    tool: Sequence[str],
    setting: Setting,
    path: Sequence[str] = (),
    handed: Mapping[str, str] | None = None,
) -> str:
    """The YAML with includes, inputs, extends and references resolved; raises Unreadable."""
    return _ask(tool, setting, [*setting.words(path, handed), "--preview"], "---")


def _value(given: Any) -> str:
    """A variable's value, given as itself or as a mapping with a description."""
    value = given.get("value", "") if isinstance(given, dict) else given
    return "" if value is None else str(value)


def _ask(tool: Sequence[str], setting: Setting, words: Sequence[str], begin: str) -> str:
    """What it prints on standard output, from the line on that is ``begin``."""
    done = subprocess.run(
        [*tool, *words, "--no-json-schema-validation"],
        cwd=setting.project.folder,
        env=setting.clean(Path(tool[0])),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith(begin)]
    if done.returncode or not starts:
        raise Unreadable(done.stdout + done.stderr)
    return "\n".join(lines[starts[0] :])
