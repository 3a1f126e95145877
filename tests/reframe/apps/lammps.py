"""LAMMPS: a melt whose energies are published, and the Madelung energy of rock salt by PPPM."""

import reframe as rfm
from reframe.core.builtins import parameter, run_before

import judging
from app_mixin import AppMixin

# Temperature, pair energy, total energy and pressure of the melt that LAMMPS's bench/in.lj
# describes, at step 0 and 100: upstream's bench/log.6Oct16.lj.fixed.icc.1 and .4 have these very
# figures, and examples/melt has the same pair energy at the start.
MELT = {
    0: (1.44, -6.7733681, -4.6134356, -5.0197073),
    100: (0.7574531, -5.7585055, -4.6223613, 0.20726105),
}
ATOMS = 32000
MADELUNG = 1.7475645946331822  # of rock salt, from sums that converge fast
# What of it is in the mesh's part: all but the sum of erfc(r) / r over the pairs.
IN_MESH = -0.5631541724662311
INPUT = """# a Lennard-Jones melt, with the figures of LAMMPS's own benchmark
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 20 0 20 0 20
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify delay 0 every 20 check no
fix move all nve
run 100

# rock salt: charges of one, a distance of one apart
clear
units lj
atom_style charge
lattice sc 1.0
region box block 0 8 0 8 0 8
create_box 2 box
lattice fcc 0.5 # a cube of edge 2 with 4 points
create_atoms 1 box
lattice fcc 0.5 origin 0.5 0 0
create_atoms 2 box
mass * 1.0
set type 1 charge 1.0
set type 2 charge -1.0
pair_style coul/long 3.6
pair_modify table 0
pair_coeff * *
kspace_style pppm 1.0e-6
kspace_modify gewald 1.0 order 7 mesh 40 40 40
thermo_style custom step atoms ecoul elong pe
thermo_modify format float %.12g
run 0
"""


@rfm.simple_test
class Lammps(rfm.RunOnlyRegressionTest, AppMixin):
    """A melt of 32000 atoms has its published energies, and PPPM gives rock salt's."""

    software = "LAMMPS"
    tags = {"app", "nightly", "lammps"}
    ranks = parameter([1, 2, 4])

    @run_before("run")
    def prepare(self):
        self.write_input("in.check", INPUT)
        self.trace_loader("lmp", "-in", "in.check")


def complaints(text, ranks):
    """What is wrong with what LAMMPS printed."""
    loop = rf"^Loop time of (\S+) on (\d+) procs for 100 steps with {ATOMS} atoms$"
    found = judging.equal("processes", judging.numbers(loop, text, 2)[1], ranks)
    for step, wanted in MELT.items():
        row = judging.numbers(rf"^ +{step} +(\S+) +(\S+) +0 +(\S+) +(\S+) *$", text, 4)
        names = ("temperature", "pair energy", "energy", "pressure")
        for name, value, known in zip(names, row, wanted, strict=True):
            # Eight figures are printed. The order of sums differs by 1e-16, and the melt's chaos
            # makes less than 1e-7 of that in 100 steps.
            found += judging.near(f"{name} at step {step}", value, known, 2e-7)
    atoms, _, mesh, both = judging.numbers(r"^ +0 +(512) +(\S+) +(\S+) +(\S+) *$", text, 4)
    found += judging.equal("atoms of salt", atoms, 512)
    # PPPM on this mesh errs by 1e-9.
    found += judging.near("the mesh's part of rock salt's energy", mesh, IN_MESH, 2e-8)
    # LAMMPS's erfc is a rational function good to 1.5e-7 for a pair.
    found += judging.near("rock salt's energy for an ion", both, -MADELUNG / 2, 1e-6)
    # An FFT in single precision is a choice at build time, too coarse for tight accuracies.
    precise = r"^ +using double precision "
    return found + judging.said(precise, text, "the FFT is not one in double precision")


def figures(text):
    """The time of the melt's 100 steps, and the rate of it."""
    seconds = judging.number(r"^Loop time of (\S+) on \d+ procs for 100 steps", text)
    rate = 1e-6 * 100 * ATOMS / seconds
    return judging.finite({"melt": "s", "melt_rate": "Matom-step/s"}, (seconds, rate))
