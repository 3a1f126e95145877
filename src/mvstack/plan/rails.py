"""What a node's links into its fabric make the MPI's module set, and a check hold. Pure."""

import re
from typing import Any

from mvstack.model.policy import Policy
from mvstack.model.rules import RailRow, Setting
from mvstack.model.system import Partition
from mvstack.plan.choose import Facts, holds

WORD = re.compile(r"{(.*?)}")


def rail_settings(
    part: Partition, facts: Facts, policy: Policy, alone: str = ""
) -> dict[str, Setting]:
    """The settings of the policy's rows for ``part``; those of the first row stand.

    With ``alone`` they keep to that one adapter.
    """
    words, made = _words(part, alone), dict[str, Setting]()
    for row in _rows(part, facts, policy):
        for name, setting in row.environment.items():
            if name not in made and all(words[one] for one in WORD.findall(setting.value)):
                made[name] = setting.model_copy(update={"value": _filled(setting.value, words)})
    return made


def rail_configure(part: Partition, facts: Facts, policy: Policy, builder: str) -> list[str]:
    """The words by which ``builder`` makes the MPI for the network of ``part``."""
    return [row.configure[builder] for row in _rows(part, facts, policy) if row.configure]


def rails(part: Partition, facts: Facts, policy: Policy) -> dict[str, Any]:
    """What a check of the links needs: {} where there is one, or no way to use one alone.

    ``pairs`` of ranks use all ``links``; by the variables of ``alone`` they use one of them.
    """
    count, words = part.rails, _words(part)
    each = [row.each for row in _rows(part, facts, policy) if row.each] or ["{rails}"]
    pairs = count // int(_filled(each[0], words))
    alone = {
        hca: {name: one.value for name, one in rail_settings(part, facts, policy, hca).items()}
        for hca in part.network.hcas
    }
    if count == 1 or (pairs == 1 and not any(alone.values())):
        return {}
    return {"links": count, "pairs": pairs, "alone": alone or {"nearest": {}}}


def _rows(part: Partition, facts: Facts, policy: Policy) -> list[RailRow]:
    torus = bool(part.network.torus)
    fits = [row for row in policy.rails if row.least <= part.rails and row.torus <= torus]
    return [row for row in fits if holds(row.when, facts)]


def _words(part: Partition, alone: str = "") -> dict[str, str]:
    hcas = [alone] if alone else part.network.hcas
    count, key = 1 if alone else part.rails, part.network.key
    return {
        "rails": str(count),
        "each": str(max(1, count // max(1, part.gpus))),
        "hcas": ":".join(hcas),
        "devices": ",".join(f"{name}:1" for name in hcas),
        "interfaces": ",".join(hcas),
        "key": f"{key & 0x7FFF:#06x}" if key else "",
    }


def _filled(value: str, words: dict[str, str]) -> str:
    return WORD.sub(lambda found: words[found[1]], value)
