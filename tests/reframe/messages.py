"""Messages between ranks bring the right values."""

import re

import reframe as rfm
from reframe.core.builtins import run_after, sanity_function
from reframe.core.exceptions import SanityError

from mvapich_stack_mixin import MvapichStackMixin


def judge(text, right):
    """A SanityError unless the program said that all is ``right``."""
    if found := re.search(r"^wrong: (.*)$", text, re.M):
        raise SanityError(f"a message brought a wrong value: {found[1]}")
    if not re.search(rf"^{right}$", text, re.M):
        steps = re.findall(r"^at (.*)$", text, re.M)
        where = steps[-1] if steps else "MPI_Init"
        raise SanityError(f"the program did not finish: it ended in {where}; see its errors")
    return True


@rfm.simple_test
class Messages(rfm.RegressionTest, MvapichStackMixin):
    """Every element of messages of 16 B to 4 MiB, contiguous and strided, sent and received."""

    sourcepath = "messages.c"
    tags = {"smoke", "correct"}
    time_limit = "300s"

    @run_after("init")
    def ask_for_ranks(self):
        """Four, so that messages of others may wait where one from any source is received."""
        self.num_tasks = 4

    @sanity_function
    def every_value_is_right(self):
        return judge(self.output(), "right messages between 4 ranks")


@rfm.simple_test
class Dialogue(rfm.RegressionTest, MvapichStackMixin):
    """Two ranks in turns, by MPI_Send and MPI_Recv: each message is taken in its turn."""

    sourcepath = "dialogue.c"
    tags = {"smoke", "correct"}
    time_limit = "300s"

    @run_after("init")
    def ask_for_ranks(self):
        """Two: where each has a core an MPI may take messages in another way."""
        self.num_tasks = 2

    @sanity_function
    def every_message_is_right(self):
        return judge(self.output(), "right dialogue")
