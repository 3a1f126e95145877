"""Whether Slurm could start a job now, read from what it says. Pure."""

import os
import re


def could_start(said):
    """From the text of ``sinfo -h -o "%P %a %T"``: whether srun would start two ranks soon.

    Inside an allocation it would. Outside of one it goes to the default partition, whose name
    sinfo ends in an asterisk; a state that ends in one is of nodes that do not respond.
    """
    if os.environ.get("SLURM_JOB_ID"):
        return True
    return bool(re.search(r"^\S+\* up (idle|mixed)$", said, re.M))
