"""The contract of a check of an application: it runs where the plan has the package.

Such a check names the package (``software``) and its numbers of ranks (``ranks``), writes or finds
its input, and judges the program's physics in a function ``complaints(text, ranks)`` of its file,
which is pure and has a unit test. One answer is expected of every number of ranks, within a
tolerance that the function states with its reason. Every rank is shown to have loaded the MPI under
test, and the libraries ``libraries`` from below the tree under test.

A check with a ``sourcepath`` is a program of ours from src/, compiled against the package and
linked with ``links``.
"""

import re
import sys
from pathlib import Path

from reframe.core.builtins import run_after, run_before, sanity_function, variable
from reframe.core.exceptions import SanityError

from mvapich_stack_mixin import MvapichStackMixin

SOURCES = Path(__file__).resolve().parent / "src"


class AppMixin(MvapichStackMixin):
    """What checks of applications share: module, ranks, proof of the MPI, verdict, figures."""

    #: The package's name in the release.
    software = variable(str)
    #: Files below the folder of the run, patterns, whose text is judged after what was printed.
    results = variable(list, value=[])
    #: Beginnings of names of shared libraries that must come from the tree under test.
    libraries = variable(list, value=[])

    #: What a program of ours is linked with; "$BLAS" is the BLAS and LAPACK that the modules bring.
    links = variable(list, value=[])

    @run_after("init")
    def only_where_it_is(self):
        """On MPI builds over which the plan has the package."""
        feature = "package-" + self.software.lower().replace(".", "-")
        self.valid_prog_environs = [f"+mpi +{feature}"]
        self.num_tasks = self.ranks
        self.sourcesdir = None
        if self.sourcepath:
            self.sourcesdir, self.build_system = str(SOURCES), "SingleSource"
        # They take seconds; ranks that wait for each other on too few cores take many of them.
        self.time_limit = "300s"

    @run_after("setup")
    def load_package(self):
        """Load its module; the figures are under its name."""
        entry = self.package(self.software)
        self.modules = [entry["module"]]
        self.benchmark = f"{entry['name']} {entry['version']}"
        # Threads beside ranks would measure the scheduler, and sum in another order.
        self.env_vars = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **self.env_vars}

    @run_before("compile")
    def link_with_it(self):
        """Flags of a program of ours. gfortran looks for modules in no folder of CPATH's."""
        if self.sourcepath:
            self.prebuild_cmds = [". ./find_blas.sh"]
            self.build_system.cflags = ["-std=gnu99", "-O2"]
            self.build_system.cxxflags = ["-std=gnu++14", "-O2"]
            self.build_system.fflags = ["-O2", "${CPATH:+-I${CPATH//:/ -I}}"]
            self.build_system.ldflags = self.links

    @run_before("run")
    def trace_program(self):
        """A program of ours runs as it is."""
        if self.sourcepath:
            self.trace_loader(self.executable)

    def before(self, command, ranks=1):
        """A line of a job's script that runs ``command`` on a node before the program itself."""
        count = {"ranks": ranks, "nodes": 1, "ranks_per_node": ranks}
        return self.mpi["launch"].format(**count, program=command)

    def write_input(self, name, text):
        """An input file in the folder of the run."""
        Path(self.stagedir, name).write_text(text)

    def answer(self):
        """All that is judged, once it is proved that the program ran over the MPI under test."""
        text = self.output()
        self.prove_traced()
        self.prove_libraries()
        return "\n".join([text, self.file(self.stderr), *map(self.file, self._results())])

    def _results(self):
        folder = Path(self.stagedir)
        return [path.name for pattern in self.results for path in sorted(folder.glob(pattern))]

    def prove_libraries(self):
        """Fail unless the libraries of the package came from the tree under test."""
        traces = map(self.file, Path(self.stagedir).glob("loader.*"))
        loaded = {path for trace in traces for path in re.findall(r"calling init: (\S+)", trace)}
        for beginning in self.libraries:
            mine = sorted(path for path in loaded if Path(path).name.startswith(beginning))
            if not mine:
                raise SanityError(f"no process loaded a {beginning}*: look at how it was linked")
            for path in mine:
                if not self.below_tree(path):
                    raise SanityError(
                        f"{path} was loaded, which is not {self.software} of this tree "
                        f"({self.tree}): look at LD_LIBRARY_PATH and at `module show "
                        f"{self.package(self.software)['module']}`"
                    )

    @sanity_function
    def right(self):
        """The package's physics."""
        complaints = self._own("complaints")(self.answer(), self.num_tasks)
        if complaints:
            raise SanityError(
                f"{self.benchmark} on {self.num_tasks} ranks: {'; '.join(complaints)}. Its output "
                f"is in {self.stagedir}"
            )
        return True

    @run_before("performance")
    def record_app_figures(self):
        """Hand the check's figures, name → (value, unit), to ReFrame."""
        rows = self._own("figures")(self.answer())
        self.record_figures((name, None, value, unit) for name, (value, unit) in rows.items())

    def _own(self, name):
        """The function ``name`` of the check's file."""
        return getattr(sys.modules[type(self).__module__], name)
