"""Checks of applications and libraries; what they share lies in the folder above.

ReFrame loads this file before each of the checks beside it.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
