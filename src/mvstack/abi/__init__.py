"""Whether programs linked to one MPI run with another: soname, symbols and constants decide."""

from mvstack.abi.compare import Difference, differences
from mvstack.abi.library import Library, read_constants, read_library, read_program

__all__ = [
    "Difference",
    "Library",
    "differences",
    "read_constants",
    "read_library",
    "read_program",
]
