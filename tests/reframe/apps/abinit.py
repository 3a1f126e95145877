"""ABINIT: silicon with an atom moved along the diagonal, which x, y and z see alike."""

import reframe as rfm
from reframe.core.builtins import parameter, run_before

import judging
from app_mixin import AppMixin

# Hartree and bohr, of 10.0.7 with libxc 5.2 on one rank
ENERGY, FORCE = -7.8675518471726, 0.0121489113
ALONG, ASIDE = 6.906865e-06, 5.240332e-05  # stress
BANDS = 8

# As in CP2K's GTH_POTENTIALS, in the format of ABINIT's HGH (pspcod 10).
PSEUDO = """GTH-PBE-q4 of silicon, M. Krack, Theor. Chem. Acc. 114, 145 (2005)
14 4 50101 zatom zion pspdat
10 11 1 0 2001 0 pspcod pspxc lmax lloc mmax r2well
0.44000000 1 -6.26928833 rloc nloc c
2 nnonloc
0.43563383 2 8.95174150 -2.70627082 r h11 h12 of s
3.49378060 h22
0.49794218 1 2.43127673 r h11 of p
0.0 k11
"""
# No symmetry is used, so that what is alike is computed and not copied.
INPUT = """pseudos "si.gth"
ntypat 1
znucl 14
natom 2
typat 1 1
acell 3*10.33
rprim 0 0.5 0.5  0.5 0 0.5  0.5 0.5 0
xred 3*0  3*0.26
nsym 1
ngkpt 2 2 2
nshiftk 4
shiftk 0.5 0.5 0.5  0.5 0 0  0 0.5 0  0 0 0.5
ecut 12
nband {bands}
ixc -101130
nstep 40
toldfe 1.0d-11
paral_kgb 1
npkpt {of_kpoints}
npband {of_bands}
npfft 1
"""
WANTED = "etotal,cartesian_forces,cartesian_stress_tensor"


@rfm.simple_test
class Abinit(rfm.RunOnlyRegressionTest, AppMixin):
    """Ranks share the k-points, and the bands of each: one energy, and what symmetry demands."""

    software = "ABINIT"
    tags = {"app", "nightly", "abinit"}
    ranks = parameter([1, 2, 4])
    results = ["si.abo", "found.cdl"]

    @run_before("run")
    def prepare(self):
        of_bands = 2 if self.ranks > 1 else 1
        split = {"bands": BANDS, "of_bands": of_bands, "of_kpoints": self.ranks // of_bands}
        self.write_input("si.gth", PSEUDO)
        self.write_input("si.abi", INPUT.format(**split))
        self.trace_loader("abinit", "si.abi")
        self.postrun_cmds = [
            f"ncdump -p 9,17 -v {WANTED} sio_GSR.nc > found.cdl",
            *self.postrun_cmds,
        ]


def complaints(text, ranks):
    """What is wrong with what abinit wrote in its output and through netCDF."""
    found = judging.said(r"^ Calculation completed\.$", text, "ABINIT did not come to its end")
    found += judging.said(r"^ At SCF step .* etot is converged", text, "the SCF did not converge")
    tasks = judging.number(r"^- +mpi_nproc: +(\d+),", text)
    found += judging.equal("processes", tasks, ranks)
    energy, force, stress = (judging.variable(name, text) for name in WANTED.split(","))
    found += judging.equal(
        "values in the netCDF file", [*map(len, (energy, force, stress))], [1, 6, 6]
    )
    if found:
        return found
    # The SCF stops at 1e-11; sums of ranks differ by 1e-13, other compilers' by more.
    found += judging.near("total energy", energy[0], ENERGY, 1e-9)
    # Nothing is made symmetric; wave functions are converged to 1e-14, forces to the root of it.
    for axis, one, other in zip("xyz", force[:3], force[3:], strict=True):
        found += judging.near(f"force along {axis}", one, FORCE, 1e-7)
        found += judging.near(f"force along {axis}, of both atoms", one + other, 0, 1e-12)
    for names, values, wanted in (
        (("xx", "yy", "zz"), stress[:3], ALONG),
        (("yz", "xz", "xy"), stress[3:], ASIDE),
    ):
        for name, value in zip(names, values, strict=True):
            found += judging.near(f"stress {name}", value, wanted, 1e-9)
    return found


def figures(text):
    """The wall time of the run, the first rank's."""
    row = r"^- Proc\. +0 individual time \(sec\): cpu= +\S+ +wall= +(\S+)$"
    return judging.finite({"run": "s"}, [judging.number(row, text)])
