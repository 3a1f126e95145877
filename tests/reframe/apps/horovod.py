"""Horovod: training shared out over the ranks is training on all samples at once."""

import reframe as rfm
from reframe.core.builtins import parameter, run_after, run_before

import judging
from app_mixin import SOURCES, AppMixin

STEPS = 100
# Of src/horovod_train.py and its twin for PyTorch, whose gradients are means over all samples
# whatever the ranks. The same arithmetic in NumPy, without ranks, gives this loss.
LOSS = 0.0024117425


@rfm.simple_test
class Horovod(rfm.RunOnlyRegressionTest, AppMixin):
    """A network of TensorFlow trained on all ranks has the loss that it has on one."""

    software = "Horovod"
    tags = {"app", "nightly", "horovod"}
    ranks = parameter([1, 2, 4])
    framework, other, program = "TensorFlow", "pytorch", "horovod_train.py"

    @run_after("setup")
    def choose_framework(self):
        """EasyBuild's is for one framework, which its module names; Spack's is for both."""
        mine = [
            package["module"]
            for package in self.current_environ.extras["packages"]
            if package["name"] == self.software
            and package.get("mpi") == self.mpi["module"]
            and self.other not in package["module"]
        ]
        self.skip_if(not mine, f"the plan has no Horovod for {self.framework}")
        self.modules = mine[:1]

    @run_before("run")
    def prepare(self):
        self.env_vars = {**self.env_vars, "HOROVOD_CPU_OPERATIONS": "MPI"}
        self.trace_loader("python3", str(SOURCES / self.program), str(STEPS))


@rfm.simple_test
class HorovodTorch(Horovod):
    """A network of PyTorch trained on all ranks has the loss that it has on one."""

    software = "Horovod"
    tags = {"app", "nightly", "horovod"}
    ranks = parameter([1, 2, 4])
    framework, other, program = "PyTorch", "tensorflow", "horovod_train_torch.py"


def complaints(text, ranks):
    """What is wrong with what the program printed."""
    line = rf"^ranks (\d+) steps {STEPS} loss (\S+) samples/s \S+$"
    found, loss = judging.numbers(line, text, 2)
    return [
        *judging.equal("ranks", found, ranks),
        # Ten decimals are printed; sums in double precision differ by far less.
        *judging.near("loss", loss, LOSS, 1e-9),
    ]


def figures(text):
    """How many samples a second it learnt from, all ranks together."""
    return judging.finite({"rate": "samples/s"}, [judging.number(r"samples/s (\S+)$", text)])
