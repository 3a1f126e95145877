"""GROMACS: water at constant energy, whose energies at the start are the same on any ranks."""

import reframe as rfm
from reframe.core.builtins import parameter, run_before

import judging
from app_mixin import AppMixin

MOLECULES = 848  # of the shipped box of 216, put side by side four times, less what would touch
TOPOLOGY = """#include "oplsaa.ff/forcefield.itp"
#include "oplsaa.ff/spce.itp"
[ system ]
water
[ molecules ]
"""
# No thermostat, so the energy is conserved. The seed makes the velocities, the same everywhere.
PARAMETERS = """integrator = md
dt = 0.002
nsteps = 2500
cutoff-scheme = Verlet
coulombtype = PME
rcoulomb = 0.8
rvdw = 0.8
vdw-modifier = Force-switch
rvdw-switch = 0.7
constraints = h-bonds
gen-vel = yes
gen-temp = 300
gen-seed = 20261122
nstcalcenergy = 10
nstenergy = 10
nstlog = 2500
"""
# At the start, in kJ/mol, with the tolerance: of 2022.5 on one rank. Mixed precision sums pairs of
# 47000 kJ/mol of Coulomb's energy to 1e-5 of that, in an order that depends on the ranks.
START = {
    "Potential": (-38294.2, 4.0),
    "Coul. recip.": (556.609, 0.05),
    "Kinetic En.": (6427.7, 0.5),
}


@rfm.simple_test
class Gromacs(rfm.RunOnlyRegressionTest, AppMixin):
    """848 molecules of water keep their energy and begin with that known of them."""

    software = "GROMACS"
    tags = {"app", "nightly", "gromacs"}
    ranks = parameter([1, 2, 4])
    results = ["md.log"]

    @run_before("run")
    def prepare(self):
        self.write_input("topol.top", TOPOLOGY)
        self.write_input("md.mdp", PARAMETERS)
        box = "solvate -cs spc216.gro -box 3.72412 3.72412 1.86206 -o box.gro -p topol.top"
        self.prerun_cmds = [
            *self.prerun_cmds,
            self.before(f"gmx_mpi -quiet {box}"),
            self.before("gmx_mpi -quiet grompp -f md.mdp -c box.gro -p topol.top -o md.tpr"),
        ]
        settings = ["-ntomp", "1", "-reprod", "-notunepme", "-s", "md.tpr", "-deffnm", "md"]
        self.trace_loader("gmx_mpi", "-quiet", "mdrun", *settings)


def energies(log):
    """The first table of energies in md.log: names in fields of 15 columns, values below them."""
    table = log.partition("Energies (kJ/mol)\n")[2].partition("\n\n")[0].splitlines()
    found = {}
    for names, values in zip(table[::2], table[1::2], strict=False):
        for at in range(0, len(values), 15):
            name = names[at : at + 15].strip()
            found[name] = judging.number(r"(\S+)", values[at : at + 15])
    return found


def complaints(text, ranks):
    """What is wrong with what mdrun printed and with md.log."""
    processes = judging.number(r"^Using (\d+) MPI process", text)
    found = judging.equal("processes", processes, ranks)
    start = energies(text)
    for name, (value, tolerance) in START.items():
        found += judging.near(name, start.get(name, float("nan")), value, tolerance)
    # In kJ/mol/ps for each of 2544 atoms. Over 5 ps on 1, 2 and 4 ranks 3e-4 to 7e-4 were seen;
    # forces that miss a neighbour's share give 1 and more.
    drift = judging.number(r"Conserved energy drift: (\S+) kJ/mol/ps per atom", text)
    found += judging.near("drift of the conserved energy", drift, 0, 5e-3)
    return found + judging.said(r"^Finished mdrun", text, "mdrun did not come to its end")


def figures(text):
    """GROMACS's own rate, of some 2 s on two cores."""
    return judging.finite({"rate": "ns/day"}, [judging.number(r"^Performance: +(\S+) ", text)])
