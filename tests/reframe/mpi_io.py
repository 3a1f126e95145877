"""MPI-IO: a file written collectively holds, byte for byte, what was written."""

import re
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import sanity_function
from reframe.core.exceptions import SanityError

from mvapich_stack_mixin import MvapichStackMixin

BYTES = 2 * 64 * 4099  # ranks, blocks and block size of src/mpi_io.c


@rfm.simple_test
class MpiIo(rfm.RegressionTest, MvapichStackMixin):
    """Two ranks write interleaved blocks, each reads the other's; the file is then read plainly."""

    sourcepath = "mpi_io.c"
    tags = {"smoke", "correct"}

    @sanity_function
    def file_is_what_was_written(self):
        said = re.search(r"^MPI-IO (\d+) bytes by 2 ranks, (\d+) wrong", self.output(), re.M)
        if not said or said.groups() != (str(BYTES), "0"):
            found = said[0] if said else "nothing was printed"
            raise SanityError(
                f"reading back {BYTES} bytes by MPI-IO: {found}. Look at the file system of "
                f"{self.stagedir} and at ROMIO's list of file systems (mpichversion)"
            )
        data = Path(self.stagedir, "mpi_io.data").read_bytes()
        if data != bytes((7 * i + i // 251) % 256 for i in range(BYTES)):
            raise SanityError(
                f"the file read without MPI ({len(data)} bytes) is not what MPI-IO wrote ({BYTES})"
            )
        return True
