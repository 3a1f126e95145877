#!/usr/bin/env python3
"""What MPI is loaded, what it would use on this node, and what is wrong.

    mpi-doctor              look at this shell and this node
    mpi-doctor ./PROGRAM    and at what PROGRAM was linked with
    mpi-doctor --run        and start two ranks: what carries their messages?

Each line begins with ok, look (may be intended) or WRONG, which is followed by what to do.
Exit status: 0, or 1 when something is wrong. It comes with the module mvapich-stack.
"""
# Runs on the python3 of the node: 3.6 on RHEL 8 and SLES 15. Nothing beside the standard library.

import argparse
import io
import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import namedtuple

# Python leaves the program's own folder out where PYTHONSAFEPATH is set.
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)

import fabric  # noqa: E402

Finding = namedtuple("Finding", "state what fix")
OK, LOOK, WRONG = "ok", "look", "WRONG"

# Variables that by themselves take the fabric or shared memory away.
DECIDE = ("FI_PROVIDER", "UCX_TLS", "UCX_NET_DEVICES", "MPIR_CVAR_NOLOCAL")
# And what programs wait for ever with, though they start (docs/upstream.md, libfabric).
HANGS = {
    ("FI_PROVIDER", "shm"): "MPI_Iprobe and MPI_Finalize may hang over it (libfabric before 1.20)"
}
# Modules of other MPIs, as sites, vendors, distributions and EasyBuild call them.
OTHERS = re.compile(
    r"mpi/|(intel|oneapi)/i?mpi/|((cray|gnu|hpe|sgi|nvhpc)-)?(open-?mpi|mpich|mvapich2?(?!-stack/)|"
    r"impi|intel[-_]?(oneapi-)?mpi|spectrum[-_]?mpi|psmpi|hpcx|mpt)[-_/.\d]",
    re.I,
)
# MPI libraries: MPICH's and Open MPI's names, the standard ABI's, IBM's, Cray's (by compiler); but
# none for a language (libmpi_mpifh, libmpi_cxx), nor Cray's for GPUs (libmpi_gtl_cuda).
LIBMPI = re.compile(
    r"/lib(mpi|mpich)(_(mt|abi|ibm|(cray|gnu|intel|nvidia|aocc|amd|pgi)(_\w+)?))?\.so[.\d]*$"
)
# Devices of the kernel without which a fabric is not there, as patterns below /sys/class.
DEVICES = {
    "infiniband": ("infiniband", r"mlx\d|ib\w*"),
    "roce": ("infiniband", r"\w+"),
    "efa": ("infiniband", r"efa_|rdmap"),
    "omni-path": ("infiniband", r"hfi1_"),
    "slingshot-11": ("cxi", r"cxi\d"),
    "slingshot-10": ("infiniband", r"mlx5_"),
}
# What the kernel has where the driver of a vendor's GPUs is loaded.
DRIVERS = {"nvidia": "/proc/driver/nvidia/version", "amd": "/dev/kfd"}
# Packages that have the library beneath an MPI, where it is the system's.
PACKAGES = {
    "libucp.so": "libucx0 (Debian) or ucx (RHEL)",
    "libfabric.so": "libfabric1 (Debian) or libfabric (RHEL)",
}
SHARED = 64 << 20  # bytes of /dev/shm that two ranks need at least
AGAIN = "look again in a job, on a compute node"


def module_of(plan, loaded):
    """The entry of the plan whose MPI is loaded, and what is found of the modules."""
    ours = [one for one in plan["mpi"] if one["module"] in loaded]
    names = [one["module"] for one in plan["mpi"]]
    if not ours:
        load = "module load mvapich-stack/{} {}".format(plan["release"], names[0])
        return None, [Finding(WRONG, "no MPI of this stack is loaded", load)]
    found = [Finding(OK, "{} is loaded: {}".format(ours[0]["module"], described(ours[0])), "")]
    others = [one for one in loaded if OTHERS.match(one + "/") and one not in names]
    if others:
        fix = "module unload " + " ".join(others)
        found.append(Finding(WRONG, "another MPI is loaded as well: " + ", ".join(others), fix))
    return ours[0], found


def described(mpi):
    """Product, device and what it was built for."""
    return "{product} {version}, {device} for {fabric}, PMI {pmi}, {launcher}".format(**mpi)


def below(path, tree, mpi):
    """Whether ``path``, links followed, belongs to the stack or to the site's MPI that it names."""
    places = [os.path.realpath(one) for one in (tree, mpi.get("provided") or tree)]
    real = os.path.realpath(path)
    return any(real == one or real.startswith(one + os.sep) for one in places)


def commands(mpi, tree, which):
    """The wrappers and the launcher that come first on PATH."""
    launcher = shlex.split(mpi["launch"])[0]
    for name in ("mpicc", launcher):
        found = which(name)
        own = name == "mpicc" or name in ("mpiexec", "mpirun", "mpirun_rsh")
        if not found:
            fix = "load the module again, and look at its `module show`"
            yield Finding(WRONG, "{} is not on PATH".format(name), fix if own else "start a job")
        elif own and not below(found, tree, mpi):
            fix = "take its folder from PATH (look into ~/.bashrc and `module list`)"
            what = "{} is {}, which is not of the loaded MPI".format(name, found)
            yield Finding(WRONG, what, fix)
        else:
            yield Finding(OK, "{} is {}".format(name, found), "")


def fortran(line, version):
    """Whether received data may be lost, by what `mpifort -show` and `gfortran -dumpversion` print.

    gfortran 14 and newer read a small array after MPI_Irecv and not again after MPI_Wait (GCC PR
    120958), unless they are told not to, or the array is of mpi_f08's MPI_Irecv.
    """
    found = re.match(r"\d+", version)
    number = int(found.group()) if found else 0
    if number >= 14 and "gfortran" in line.split(" ")[0] and "-fno-tree-sra" not in line.split():
        what = "gfortran {} loses what MPI_Irecv receives into small arrays".format(number)
        fix = "compile with -fno-tree-sra what uses mpif.h or the module mpi; mpi_f08 needs nothing"
        yield Finding(LOOK, what, fix)


def variables(mpi, tree, environ):
    """What the shell sets against what the module sets, which names a table by its place."""
    tuned = {} if environ.get("MVAPICH_STACK_UNTUNED") == "1" else mpi.get("tuning", {})
    rows = dict(mpi.get("environment", {}), **tuned)
    planned = {
        name: "{}/rendered/{}".format(tree, row["value"]) if "table" in row else row["value"]
        for name, row in rows.items()
    }
    of_mpi = re.compile("(%s)_" % fabric.TUNING)
    for name in sorted(planned.keys() | {one for one in environ if of_mpi.match(one)}):
        found, wanted = environ.get(name), planned.get(name)
        if found == wanted or mpi.get("provided"):
            continue
        fix = "unset {}".format(name) if wanted is None else "export {}={}".format(name, wanted)
        what = "{} is {}, and the module sets {}".format(
            name, "not set" if found is None else found, "nothing" if wanted is None else wanted
        )
        if (name, found) in HANGS:
            what += ": " + HANGS[name, found]
        yield Finding(WRONG if name in DECIDE else LOOK, what, fix)


def in_a_job(plan, environ):
    """Whether programs run on this node: without a scheduler they do where one is logged in.

    The shell of `salloc` has SLURM_JOB_ID and may be on a login node; slurmd sets SLURMD_NODENAME.
    """
    names = ("SLURMD_NODENAME", "PBS_JOBID", "LSB_JOBID", "FLUX_URI")
    return not plan["job"] or any(name in environ for name in names)


def limits(mpi, in_job, locked, shared, ptrace):
    """What the system allows: locked memory, /dev/shm, reading the memory of a neighbour.

    ``locked`` and ``shared`` are bytes, None for no limit or unknown; ``ptrace`` is the kernel's
    ptrace_scope, 0 for root.
    """
    if mpi["fabric"] in DEVICES and locked is not None and locked < fabric.LOCKED:
        what = "a process may lock {} kB of memory: adapters cannot register more".format(
            locked >> 10
        )
        fix = "ulimit -l unlimited; the staff: memlock in limits.d, LimitMEMLOCK of slurmd"
        yield Finding(WRONG, what, fix) if in_job else Finding(LOOK, what, AGAIN)
    if shared is not None and shared < SHARED:
        what = "{} kB are free in /dev/shm: ranks of a node share memory there".format(shared >> 10)
        yield Finding(WRONG, what, "remove what is left in /dev/shm, or start containers with more")
    # MVAPICH 4 reads messages of 64 KiB and more (16 without our patches) out of the sender's
    # memory, asks nobody whether it may, and ends where it may not (4.0, ch4/shm/ipc/cma)
    ends = mpi["product"].startswith("mvapich") and mpi["device"] == "ch4:ofi"
    if ptrace and ends and os.environ.get("MPIR_CVAR_CH4_CMA_ENABLE") != "0":
        yield Finding(
            WRONG,
            "ptrace_scope is {}: programs end at large messages within a node".format(ptrace),
            "export MPIR_CVAR_CH4_CMA_ENABLE=0; the staff: sysctl kernel.yama.ptrace_scope=0",
        )
    elif ptrace:
        yield Finding(
            LOOK,
            "ptrace_scope is {}: ranks may not copy out of each other's memory".format(ptrace),
            "the staff: sysctl kernel.yama.ptrace_scope=0 makes large messages of a node faster",
        )


def devices(mpi, in_job, listed):
    """Whether the kernel has an adapter of the fabric; ``listed(class)`` names those of a class."""
    kind, pattern = DEVICES.get(mpi["fabric"], ("", ""))
    if not kind:
        return
    found = [name for name in listed(kind) if re.match(pattern, name)]
    if found:
        yield Finding(OK, "adapters for {}: {}".format(mpi["fabric"], ", ".join(found)), "")
    else:
        what = "this node has no adapter for {} in /sys/class/{}".format(mpi["fabric"], kind)
        fix = "the staff: is the driver loaded?"
        yield Finding(WRONG, what, fix) if in_job else Finding(LOOK, what, AGAIN)


def gpus(mpi, in_job, exists):
    """Whether the driver is here without which programs of an MPI for GPUs do not start."""
    vendor = mpi.get("gpu", "none").split("-")[0]
    driver = DRIVERS.get(vendor)
    if not driver:
        return
    if exists(driver):
        yield Finding(OK, "the driver of {}'s GPUs is loaded".format(vendor), "")
        return
    what = "the driver of {}'s GPUs is not loaded ({}): this MPI needs it".format(vendor, driver)
    fix = (
        "ask for a node with GPUs; on such a node the staff must load the driver"
        if in_job
        else "start programs in a job, on a node with GPUs; mpicc works here"
    )
    yield Finding(WRONG if in_job else LOOK, what, fix)


def slurm(mpi, printed):
    """Whether srun has the PMI that the MPI was built for; ``printed`` is of `srun --mpi=list`."""
    planned = mpi["pmi"]
    if planned not in ("pmi1", "pmi2", "pmix") or mpi["launcher"] != "srun" or not printed.strip():
        return
    word = {"pmi1": "none"}.get(planned, planned)
    if " types are" not in printed:
        what = "srun does not list its PMIs: " + printed.strip().splitlines()[-1]
        yield Finding(LOOK, what, AGAIN + "; the staff: has this node its slurm.conf?")
    elif not re.search(r"\b%s" % word, printed):
        what = "srun has no {}: N tasks would be N worlds of one rank".format(planned)
        yield Finding(WRONG, what, "the staff: install Slurm's plugin for " + planned)


def waiting(config, environ):
    """Whether ranks wait for one that died; ``config`` is of `scontrol show config`."""
    said = dict(re.findall(r"^(KillOnBadExit|WaitTime)\s*=\s*(\d+)", config, re.M))
    kills = environ.get("SLURM_KILL_BAD_EXIT", said.get("KillOnBadExit"))
    waits = environ.get("SLURM_WAIT", said.get("WaitTime", "0"))
    if kills == "0" and waits == "0":
        what = "when one rank crashes, srun leaves the others waiting until the job's time limit"
        fix = "export SLURM_KILL_BAD_EXIT=1; the staff: KillOnBadExit=1 in slurm.conf"
        yield Finding(LOOK, what, fix)


def not_found(ldd):
    """The libraries that `ldd`, which printed this, did not find."""
    return sorted(set(re.findall(r"^\s*(\S+) => not found", ldd, re.M)))


def linked(path, mpi, tree, ldd):
    """What a program was linked with; ``ldd`` is what that prints of it."""
    if re.search(r"not a dynamic executable|statically linked", ldd):
        return [Finding(LOOK, path + " has no shared libraries: is it a script, or static?", "")]
    found = []
    lacking = not_found(ldd)
    if lacking:
        fix = "load the modules that it was built with"
        if lacking == ["libcuda.so.1"]:  # the driver's: no module has it
            fix = "start it on a node with NVIDIA's driver"
        found.append(Finding(WRONG, path + " does not find " + ", ".join(lacking), fix))
    mpis = sorted({one for one in re.findall(r"=> (/\S+)", ldd) if LIBMPI.search(one)})
    real = {os.path.realpath(one): one for one in mpis}
    if len(real) > 1:
        what = "{} loads {} MPIs: {}".format(path, len(real), ", ".join(mpis))
        fix = "build it, and the libraries it uses, with the mpicc of one module"
        found.append(Finding(WRONG, what, fix))
    for one in mpis:
        if not below(one, tree, mpi):
            what = "{} loads {}, which is not the loaded MPI".format(path, one)
            fix = "build it anew with this module's mpicc; look at LD_LIBRARY_PATH and `readelf -d`"
            found.append(Finding(WRONG, what, fix))
    if not mpis and not lacking:
        found.append(
            Finding(LOOK, path + " uses no MPI library", "build it with mpicc, mpicxx or mpifort")
        )
    return found or [Finding(OK, "{} loads {}".format(path, mpis[0]), "")]


def beneath(mpi, tree, home, ldd):
    """The UCX or libfabric that the MPI below ``home`` finds in this shell, as ``ldd`` says."""
    libmpi = os.path.join(home, "lib", mpi["believe"].get("soname") or "-")
    if not below(libmpi, tree, mpi):  # another MPI's, or the shell does not say
        return
    printed = ldd(libmpi)
    paths = re.findall(r"=> (/\S+)", printed)
    for name in not_found(printed):
        if name == "libcuda.so.1":  # gpus() looks for the driver
            continue
        what = "{} is not found, and {} needs it: no program of this MPI starts"
        yield Finding(WRONG, what.format(name, needing(name, [libmpi, *paths])), mend(name, mpi))
    wrong = fabric.other_transport(paths, mpi, tree)
    if wrong:
        what, _, where = wrong.partition(". Look ")
        yield Finding(WRONG, "the MPI would load " + what, "look " + where)


def needing(name, paths):
    """The first of the files ``paths`` that names the library ``name``, by default the first."""
    word = b"\0" + name.encode() + b"\0"  # as an ELF file has it
    for path in paths:
        if os.path.isfile(path):
            with open(path, "rb") as file:
                if word in file.read():
                    return path
    return paths[0]


def mend(name, mpi):
    """What to do where the library ``name`` beneath the MPI is not found."""
    stem = name[: name.find(".so") + 3]
    if stem in PACKAGES and mpi.get("transport", {}).get("provision") == "external":
        return "the staff: install {} on this node, too".format(PACKAGES[stem])
    return (
        "module load {} again, and look at LD_LIBRARY_PATH; where that does not help, the staff: "
        "install on this node what has it, or `mvstack install` where it was of the stack"
    ).format(mpi["module"])


def ran(mpi, printed, status):
    """What two ranks of identity.c said."""
    ranks = re.findall(r"^rank (\d+) on ", printed, re.M)
    if sorted(ranks) != ["0", "1"]:
        if ranks == ["0", "0"]:
            what = "each of two ranks is a world of its own: the launcher speaks another PMI"
            return [Finding(WRONG, what, "start programs by: " + mpi["launch"])]
        last = " / ".join(printed.strip().splitlines()[-3:])
        what = "two ranks did not run (exit status {}): {}".format(status, last)
        return [
            Finding(
                WRONG, what, "look at the lines above, then at `module show " + mpi["module"] + "`"
            )
        ]
    believe = mpi["believe"]
    wrong = [fabric.fault(printed, mpi["device"], believe), fabric.over_tcp(printed, believe)]
    parts = [one.partition(". Look ") for one in wrong if one]
    found = [Finding(WRONG, what, "look " + where) for what, _, where in parts]
    used = fabric.providers(printed) | fabric.transports(printed)
    what = "two ranks ran; in use: " + (", ".join(sorted(used)) or "not told by this device")
    return found or [Finding(OK, what, "")]


def told(*command, **options):
    """What a command prints, both outputs; "" when there is none or it takes too long."""
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, **options
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")


def run_two(mpi, source, hosts):
    """Compile ``source`` and start two ranks by the plan's launch line, in a folder made for it.

    ``hosts`` is the command that prints the nodes of the job, for launchers that read a file.
    """
    try:
        folder = tempfile.mkdtemp(dir=os.getcwd(), prefix=".mpi-doctor-")
    except OSError as error:
        what = "the program to run cannot be put here: {}".format(error)
        return [Finding(WRONG, what, "cd to a folder of yours on a shared file system")]
    try:
        program = os.path.join(folder, "two")
        compiled = told("mpicc", "-o", program, source)
        if not os.path.exists(program):
            last = " / ".join(compiled.strip().splitlines()[-3:]) or "nothing was printed"
            return [
                Finding(WRONG, "mpicc made no program: " + last, "load the compiler's module, too")
            ]
        line = mpi["launch"].format(
            ranks=2, nodes=1, ranks_per_node=2, program=shlex.quote(program)
        )
        before = ""
        if "-hostfile hosts" in mpi["launch"]:  # as modulefiles/job.lines.j2
            before = "({}) </dev/null >hosts && ".format(hosts)
        asking = dict(os.environ, MPIR_CVAR_DEBUG_SUMMARY="1", UCX_LOG_LEVEL="info")
        done = subprocess.run(
            ["bash", "-c", before + "timeout 60 " + line],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=asking,
            cwd=folder,
        )
        return ran(mpi, done.stdout.decode("utf-8", "replace"), done.returncode)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def names_in(kind):
    """The devices of a class of the kernel."""
    folder = os.path.join("/sys/class", kind)
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def number_in(path):
    """The number that a file holds; 0 without it."""
    try:
        with open(path) as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


def findings(plan, arguments):
    """Everything, one after the other."""
    loaded = [one for one in os.environ.get("LOADEDMODULES", "").split(":") if one]
    mpi, found = module_of(plan, loaded)
    yield from found
    if mpi is None:
        return
    locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    shared = os.statvfs("/dev/shm") if os.path.isdir("/dev/shm") else None
    in_job = in_a_job(plan, os.environ)
    yield from commands(mpi, plan["tree"], shutil.which)
    line = told("mpifort", "-show")
    yield from fortran(line, told(line.split(" ")[0] or "gfortran", "-dumpversion"))
    yield from variables(mpi, plan["tree"], os.environ)
    yield from limits(
        mpi,
        in_job,
        None if locked == resource.RLIM_INFINITY else locked,
        shared.f_bavail * shared.f_frsize if shared else None,
        number_in("/proc/sys/kernel/yama/ptrace_scope") if os.geteuid() else 0,
    )
    home = os.environ.get("MPI_HOME", "")
    yield from beneath(mpi, plan["tree"], home, lambda libmpi: told("ldd", libmpi))
    yield from devices(mpi, in_job, names_in)
    yield from gpus(mpi, in_job, os.path.exists)
    yield from slurm(mpi, told("srun", "--mpi=list"))
    if mpi["launcher"] == "srun":
        yield from waiting(told("scontrol", "show", "config"), os.environ)
    for program in arguments.program:
        if os.path.isfile(program):
            yield from linked(program, mpi, plan["tree"], told("ldd", program))
        else:
            yield Finding(WRONG, program + " is no file", "name the program's file")
    if arguments.run:
        hosts = plan["job"].get("hosts", "hostname")
        yield from run_two(mpi, os.path.join(HERE, "identity.c"), hosts)
    if arguments.printed:
        yield from ran(mpi, arguments.printed.read(), 0)


def main():
    """Print what is found. Raises BrokenPipeError."""
    # names of files may be of any bytes
    sys.stdout = io.TextIOWrapper(
        sys.stdout.buffer, sys.stdout.encoding, "backslashreplace", line_buffering=True
    )
    parser = argparse.ArgumentParser(
        prog="mpi-doctor", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", nargs="*", help="a program to look at")
    parser.add_argument(
        "--run", action="store_true", help="compile a small program and start two ranks"
    )
    parser.add_argument(
        "--printed",
        metavar="FILE",
        type=argparse.FileType(errors="replace"),
        help="what two ranks of identity.c (beside this program) printed elsewhere",
    )
    arguments = parser.parse_args()
    path = os.path.join(os.path.dirname(os.path.dirname(HERE)), "records", "plan.json")
    try:
        with open(path) as file:
            plan = json.load(file)
    except (OSError, ValueError) as error:
        sys.exit("mpi-doctor: the stack's plan cannot be read: {}".format(error))
    wrong = 0
    for one in findings(plan, arguments):
        wrong += one.state == WRONG
        print("{:<6}{}".format(one.state, one.what))
        if one.fix:
            print("      fix: " + one.fix)
    print("{} wrong".format(wrong) if wrong else "nothing is wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # mpi-doctor | head -1
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what Python writes when it ends
        sys.exit(1)
