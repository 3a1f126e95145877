"""This very machine, looked at: what it is, how that was found, and a system file made of it.

``look`` reads files and asks tools; ``capture`` keeps all that it read in one file, so that
the same can be found again elsewhere; ``system_yaml`` writes what was found as a system file with
a comment on each line. Nothing is guessed: what was not found is ``None`` and said.
"""

from mvstack.discover.look import capture, look
from mvstack.discover.machine import Machine
from mvstack.discover.system_file import system_yaml

__all__ = ["Machine", "capture", "look", "system_yaml"]
