"""What a node's links into its fabric make the MPI's module set. Pure."""

import re

from mvstack.model.policy import Policy
from mvstack.model.rules import Setting
from mvstack.model.system import Partition
from mvstack.plan.choose import Facts, holds

WORD = re.compile(r"{(.*?)}")


def rail_settings(part: Partition, facts: Facts, policy: Policy) -> dict[str, Setting]:
    """The settings of the policy's rows for ``part``; those of the first row stand."""
    rails, hcas = part.rails, part.network.hcas
    words = {
        "rails": str(rails),
        "each": str(max(1, rails // max(1, part.gpus))),
        "hcas": ":".join(hcas),
        "devices": ",".join(f"{name}:1" for name in hcas),
    }
    made: dict[str, Setting] = {}
    for row in policy.rails:
        if rails < row.least or not holds(row.when, facts):
            continue
        for name, setting in row.environment.items():
            if name not in made and all(words[one] for one in WORD.findall(setting.value)):
                value = WORD.sub(lambda found: words[found[1]], setting.value)
                made[name] = setting.model_copy(update={"value": value})
    return made
