"""Start programs by the launch line of the plan, so that checks and module help cannot disagree."""

from reframe.core.launchers import JobLauncher

PROGRAM = "{program}"


class PlannedLauncher(JobLauncher):
    """ReFrame launcher for a line such as ``mpiexec -n {ranks} {program}``."""

    def __init__(self, launch):
        super().__init__()
        if not launch.endswith(PROGRAM):
            raise ValueError(f"launch line {launch!r} of the plan does not end in {PROGRAM}")
        self._launch = launch.removesuffix(PROGRAM)

    def command(self, job):
        """The words before the program."""
        nodes = job.num_tasks // (job.num_tasks_per_node or job.num_tasks) or 1
        filled = self._launch.format(
            ranks=job.num_tasks, nodes=nodes, ranks_per_node=job.num_tasks // nodes
        )
        return filled.split()
