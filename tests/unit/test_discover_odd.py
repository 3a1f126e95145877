"""Machines that are broken, empty or contradict themselves: said, never guessed, never raised."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from discover_roots import DATA, data_of, make, port, system_of, tool

from mvstack.discover import look, system_yaml
from mvstack.discover.machine import REQUIRED


def said(machine, *words: str) -> bool:
    return any(all(word in note for word in words) for note in machine.notes)


def root_of(tmp_path: Path, name: str) -> Path:
    """A copy of a machine, to be broken."""
    shutil.copytree(DATA / name, tmp_path / name, symlinks=True)
    return tmp_path / name


def test_empty_root_invents_nothing(tmp_path):
    machine = look(tmp_path)
    for name in (*REQUIRED, "nic", "pmi", "gpus"):
        assert getattr(machine, name) is None, name
    assert machine.externals == [] and machine.file_systems == [] and machine.compilers == []
    problems = machine.problems()
    assert [problem.message for problem in problems] == [f"{n} was not found" for n in REQUIRED]
    assert all(problem.because and problem.todo for problem in problems)
    node = data_of(machine)["partitions"]["node"]
    for name in set(REQUIRED) - {"os", "scheduler"}:
        assert node[name] is None, name
    for line in system_yaml(machine).splitlines():
        if line.strip().startswith(tuple(f"{name}:" for name in REQUIRED)):
            assert "# not found: fill in" in line


def test_root_that_does_not_exist(tmp_path):
    assert look(tmp_path / "nowhere").os is None


def test_port_down_is_said_and_not_used(tmp_path):
    root = root_of(tmp_path, "opa")
    shutil.rmtree(root / "sys/class/infiniband")
    port(root, "mlx5_0", state="1: DOWN", rate="10 Gb/sec (4X SDR)")
    machine = look(root)
    assert machine.fabric == "shm" and machine.nic is None
    assert said(machine, "mlx5_0", "port 1 is DOWN")
    assert "no active network adapter" in machine.how["fabric"]


def test_port_down_in_a_cluster_leaves_tcp(tmp_path):
    root = root_of(tmp_path, "expanse-cpu")
    (root / "sys/class/infiniband/mlx5_0/ports/1/state").write_text("2: INIT\n")
    machine = look(root)
    assert machine.fabric == "tcp"
    assert said(machine, "port 1 is INIT") and said(machine, "look at the adapters")


def test_two_fabrics_the_fastest_active_is_taken_and_said(tmp_path):
    root = root_of(tmp_path, "opa")
    port(root, "mlx5_0", layer="Ethernet", rate="200 Gb/sec (4X HDR)")
    port(root, "mlx5_1", rate="400 Gb/sec (4X NDR)", state="1: DOWN")
    machine = look(root)
    assert (machine.fabric, machine.nic) == ("roce", "mlx5")
    assert said(machine, "more than one fabric", "roce (mlx5_0)", "hfi1_0 omni-path 100 Gbit/s")
    assert said(machine, "mlx5_1", "DOWN")
    assert said(machine, "lossless")


def test_same_rate_prefers_what_is_made_for_mpi(tmp_path):
    port(tmp_path, "mlx5_0", layer="Ethernet")
    port(tmp_path, "mlx5_1", layer="InfiniBand")
    assert look(tmp_path).fabric == "infiniband"


@pytest.mark.parametrize(
    ("device", "driver", "layer", "node", "fabric", "nic"),
    [
        ("irdma0", "ice", "Ethernet", "4: RNIC", "iwarp", "irdma"),
        ("irdma0", "ice", "Ethernet", "1: CA", "roce", "irdma"),
        ("cxgb4_0", "cxgb4", "Ethernet", "4: RNIC", "iwarp", "cxgb4"),
        ("bnxt_re0", "bnxt_en", "Ethernet", "1: CA", "roce", "broadcom"),
        ("bnxt_re0", "", "Ethernet", "1: CA", "roce", "broadcom"),
        ("efa_0", "efa", "Unspecified", "7: unspecified", "efa", "efa"),
        ("rdmap0s6", "efa", "Unspecified", "7: unspecified", "efa", "efa"),
        ("hfi1_0", "hfi1", "InfiniBand", "1: CA", "omni-path", "hfi1"),
        ("mlx5_0", "mlx5_core", "InfiniBand", "1: CA", "infiniband", "mlx5"),
    ],
)
def test_adapters(tmp_path, device, driver, layer, node, fabric, nic):
    port(tmp_path, device, driver=driver, layer=layer, node=node)
    machine = look(tmp_path)
    assert (machine.fabric, machine.nic) == (fabric, nic)


def test_unknown_adapter_is_said(tmp_path):
    port(tmp_path, "newnic0", driver="newnic", layer="Unspecified")
    make(tmp_path, {"/mvstack-capture/uname--m.txt": "x86_64\n"})
    machine = look(tmp_path)
    assert machine.fabric == "shm"
    assert said(machine, "newnic0", "cannot be told")


def test_software_rdma_is_no_fabric(tmp_path):
    port(tmp_path, "rxe0", driver="", layer="Ethernet")
    make(tmp_path, {"/mvstack-capture/uname--m.txt": "x86_64\n"})
    machine = look(tmp_path)
    assert machine.fabric == "shm" and said(machine, "rxe0", "software")


def test_mlx5_ethernet_on_a_cray_hints_at_slingshot_10(tmp_path):
    port(tmp_path, "mlx5_0", layer="Ethernet")
    make(tmp_path, {"/opt/cray/pe/version": ""})
    machine = look(tmp_path)
    assert machine.fabric == "roce" and said(machine, "slingshot-10")


def test_aries(tmp_path):
    make(tmp_path, {"/dev/kgni0": ""})
    assert look(tmp_path).fabric == "aries"


def test_garbled_cpuinfo(tmp_path):
    root = root_of(tmp_path, "expanse-cpu")
    (root / "proc/cpuinfo").write_bytes(os.urandom(3000) + b"\nprocessor : x\n\n: :\n")
    machine = look(root)
    assert machine.target is None and machine.cores is None
    assert "processor" in machine.how["target"]
    text = system_yaml(machine)
    assert text.count("# not found: fill in") == 2
    assert machine.fabric == "infiniband"


def test_cpuinfo_and_uname_contradict(tmp_path):
    root = root_of(tmp_path, "expanse-cpu")
    tool(root, "uname", "-m", text="aarch64\n")
    machine = look(root)
    assert machine.target is None and "uname -m says aarch64" in machine.how["target"]
    assert machine.cores == 128


def test_hidden_flags_are_named(tmp_path):
    root = root_of(tmp_path, "aws-hpc7a")
    cpuinfo = root / "proc/cpuinfo"
    cpuinfo.write_text(cpuinfo.read_text().replace(" pku", ""))
    machine = look(root)
    assert machine.target == "x86_64_v4"
    assert said(machine, "zen4 would fit but for pku")


@pytest.mark.parametrize(
    ("cpu", "uname", "target"),
    [
        ("cpu : POWER9, altivec supported", "ppc64le", "power9le"),
        ("cpu : POWER8 (raw), altivec supported", "ppc64le", "power8le"),
        ("isa : rv64imafdc\nuarch : sifive,u74-mc", "riscv64", "u74mc"),
        ("CPU implementer : 0x46\nFeatures : fp\nCPU part : 0x001", "aarch64", "aarch64"),
    ],
)
def test_other_architectures(tmp_path, cpu, uname, target):
    make(tmp_path, {"/proc/cpuinfo": f"processor : 0\n{cpu}\n"})
    tool(tmp_path, "uname", "-m", text=uname)
    assert look(tmp_path).target == target


def test_os_release_missing(tmp_path):
    root = root_of(tmp_path, "opa")
    (root / "etc/os-release").unlink()
    machine = look(root)
    assert machine.os is None
    assert [problem.message for problem in machine.problems()] == ["os was not found"]
    assert "os: " in system_yaml(machine) and "not found: fill in (neither" in system_yaml(machine)
    make(root, {"/usr/lib/os-release": 'ID="fedora"\nVERSION_ID=39\n'})
    assert look(root).os == "fedora39"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('ID=debian\nVERSION_ID="12"', "debian12"),
        ("ID='rocky'\nVERSION_ID='9.3'", "rocky9"),
        ("ID=ubuntu\nVERSION_ID=24.04", "ubuntu24.04"),
        ("ID=sle_hpc\nVERSION_ID=15.5", "sles15"),
        ("ID=opensuse-leap\nVERSION_ID=15.5", "opensuse15.5"),
        ("ID=arch", "arch"),
        ("VERSION_ID=3", None),
        ("ID='un closed", None),
        ("ID=../../etc\nVERSION_ID=1", None),
        ("ID=null", "null"),
    ],
)
def test_distributions(tmp_path, text, name):
    machine = look(make(tmp_path, {"/etc/os-release": text}))
    assert machine.os == name
    assert data_of(machine)["os"] == name


def test_affinity_and_quota_limit_cores(tmp_path):
    root = root_of(tmp_path, "alps")
    make(root, {"/proc/self/status": "Cpus_allowed_list:\t0-7,128-135\n"})
    machine = look(root)
    assert (machine.cores, machine.cpu.cores_all, machine.cpu.threads) == (8, 128, 256)
    assert said(machine, "affinity")
    make(root, {"/sys/fs/cgroup/user.slice/cpu.max": "150000 100000\n"})
    assert look(root).cores == 1 and said(look(root), "1.5 CPUs")


def test_cgroup_version_1_and_memory(tmp_path):
    root = root_of(tmp_path, "alps")
    make(
        root,
        {
            "/proc/self/cgroup": "4:memory:/job/1\n2:cpu,cpuacct:/job/1\n",
            "/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "400000\n",
            "/sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000\n",
            "/sys/fs/cgroup/cpu/job/1/cpu.cfs_quota_us": "-1\n",
            "/sys/fs/cgroup/memory/job/1/memory.limit_in_bytes": str(8 << 30),
            "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
        },
    )
    machine = look(root)
    assert (machine.cores, machine.memory_gb) == (4, 8)
    assert said(machine, "cgroup limits memory to 8.0")


def test_mixed_gpus(tmp_path):
    root = root_of(tmp_path, "gpu-v100")
    kfd = "/sys/class/kfd/kfd/topology/nodes"
    make(root, {f"{kfd}/1/properties": "gfx_target_version 90010\ndevice_id 29704\n"})
    machine = look(root)
    assert (machine.gpu, machine.gpus) == ("nvidia", 4)
    assert said(machine, "several vendors", "4 nvidia, 1 amd")
    for node in (2, 3, 4):
        make(root, {f"{kfd}/{node}/properties": "gfx_target_version 90010\ndevice_id 29704\n"})
    machine = look(root)
    assert machine.gpu is None and machine.gpus is None
    assert "gpu: " in system_yaml(machine) and said(machine, "yours to say")


def test_gpus_of_two_models(tmp_path):
    root = root_of(tmp_path, "gpu-v100")
    info = root / "proc/driver/nvidia/gpus/0000:18:00.0/information"
    info.write_text("Model: \t\t NVIDIA A100-PCIE-40GB\n")
    machine = look(root)
    assert machine.gpus == 4 and said(machine, "more than one model", "3 x Tesla V100")


def test_gpu_without_its_driver_is_said_and_not_counted(tmp_path):
    root = root_of(tmp_path, "opa")
    card = "/sys/class/drm/card0/device"
    make(root, {f"{card}/vendor": "0x10de\n"}, {f"{card}/driver": "../nouveau"})
    machine = look(root)
    assert machine.gpu == "none" and said(machine, "nvidia", "nouveau", "not counted")


def test_intel_gpu_within_the_cpu_is_none(tmp_path):
    root = root_of(tmp_path, "opa")
    for card, address in (("card0", "0000:00:02.0"), ("card1", "0000:4d:00.0")):
        make(
            root,
            {f"/sys/devices/{address}/vendor": "0x8086", f"/sys/devices/{address}/device": "0xbd5"},
            {
                f"/sys/class/drm/{card}/device": f"../../../devices/{address}",
                f"/sys/devices/{address}/driver": "../i915",
            },
        )
    assert (look(root).gpu, look(root).gpus) == ("intel", 1)


def test_nvidia_smi_that_fails_is_said(tmp_path):
    root = root_of(tmp_path, "gpu-v100")
    tool(root, "nvidia-smi", "-L", text="Driver/library version mismatch", status="18")
    assert said(look(root), "nvidia-smi is here and fails: Driver/library version mismatch")


def test_slurm_without_a_controller_does_not_count(tmp_path):
    root = root_of(tmp_path, "expanse-cpu")
    error = "slurm_load_ctl_conf error: Unable to contact slurm controller (connect failure)"
    tool(root, "scontrol", "show", "config", text=error, status="1")
    machine = look(root)
    assert (machine.scheduler, machine.launcher, machine.pmi) == ("none", "hydra", None)
    assert said(machine, "controller does not answer", "connect failure")


def test_slurm_that_hangs_is_said(tmp_path):
    root = root_of(tmp_path, "expanse-cpu")
    tool(root, "scontrol", "show", "config", text="", status="timeout")
    machine = look(root)
    assert machine.scheduler == "none" and said(machine, "did not answer in time")


def test_slurm_with_unknown_pmi(tmp_path):
    root = root_of(tmp_path, "expanse-cpu")
    tool(root, "scontrol", "show", "config", text="MpiDefault = none\n")
    tool(root, "srun", "--mpi=list", text="MPI plugin types are...\n\tnone\n")
    machine = look(root)
    assert machine.pmi is None and said(machine, "N singletons")


def test_flux_without_an_instance_does_not_count(tmp_path):
    root = root_of(tmp_path, "mi250x-flux")
    (root / "mvstack-capture/environment.txt").unlink()
    assert look(root).scheduler == "none" and said(look(root), "no instance")


@pytest.mark.parametrize(
    ("command", "text", "extra", "scheduler", "launcher"),
    [
        (("qstat", "--version"), "pbs_version = 2022.1.1", "", "pbs", "hydra"),
        (("qstat", "--version"), "pbs_version = 2022.1.1", "palstat", "pbs", "pals"),
        (("lsid",), "IBM Spectrum LSF Standard 10.1.0.9, Oct 16 2019", "jsrun", "lsf", "jsrun"),
        (("lsid",), "IBM Spectrum LSF Standard 10.1.0.9, Oct 16 2019", "", "lsf", "hydra"),
    ],
)
def test_other_schedulers(tmp_path, command, text, extra, scheduler, launcher):
    tool(tmp_path, *command, text=text)
    if extra:
        make(tmp_path, {f"/mvstack-capture/which-{extra}.txt": f"/opt/bin/{extra}\n"})
    machine = look(tmp_path)
    assert (machine.scheduler, machine.launcher) == (scheduler, launcher)


def test_two_schedulers_are_said(tmp_path):
    root = root_of(tmp_path, "expanse-cpu")
    tool(root, "lsid", text="IBM Spectrum LSF Standard 10.1.0.9")
    machine = look(root)
    assert machine.scheduler == "slurm" and machine.how["launcher"] == "scheduler slurm"
    assert said(machine, "more than one scheduler")


def test_gcc_that_is_clang_is_said(tmp_path):
    root = root_of(tmp_path, "opa")
    tool(root, "gcc", "--version", text="Apple clang version 15.0.0\n")
    machine = look(root)
    assert machine.compiler is None and said(machine, "gcc is here and is no GNU compiler")


def test_mixed_gcc_versions_are_said_and_a_whole_set_is_taken(tmp_path):
    root = root_of(tmp_path, "opa")
    tool(root, "gfortran", "--version", text="GNU Fortran (GCC) 12.2.0\n")
    for name in ("gcc", "g++"):
        tool(root, f"{name}-13", "--version", text=f"{name}-13 (Debian 13.2.0-1) 13.2.0\n")
    tool(root, "gfortran-13", "--version", text="GNU Fortran (Debian 13.2.0-1) 13.2.0\n")
    machine = look(root)
    assert machine.compiler.path == "/usr/bin/gcc-13"
    assert said(machine, "not of one set") and said(machine, "was taken")
    assert system_of(machine).partitions["node"].compiler.version == "13.2.0"


def test_pmix_of_debian_is_below_the_library_folder(tmp_path):
    root = root_of(tmp_path, "opa")
    lib = "/usr/lib/x86_64-linux-gnu"
    make(root, {f"{lib}/pmix2/include/pmix.h": "", f"{lib}/pkgconfig/pmix.pc": "Version: 4.2.2\n"})
    pmix = system_of(look(root)).partitions["node"].externals["pmix"]
    assert (pmix.prefix, pmix.version) == (f"{lib}/pmix2", "4.2.2")


def test_link_out_of_the_root_is_not_followed(tmp_path):
    make(tmp_path, {}, {"/etc/os-release": "/etc/os-release", "/proc": "/proc"})
    machine = look(tmp_path)
    assert machine.os is None and machine.cores is None


def test_folders_where_files_should_be(tmp_path):
    for path in ("proc/cpuinfo", "etc/os-release", "proc/meminfo", "sys/class/infiniband/m/ports"):
        (tmp_path / path).mkdir(parents=True)
    assert look(tmp_path).cores is None


def test_no_permission_is_said(tmp_path):
    root = root_of(tmp_path, "opa")
    for folder in (tmp_path, *tmp_path.parents):  # pytest's folders are its user's alone
        if folder.name.startswith(("pytest-", "popen-", "test_")):
            folder.chmod(0o755)
    (root / "etc/os-release").chmod(0)
    (root / "sys/class/infiniband").chmod(0)
    uid = os.geteuid()
    try:
        if uid == 0:  # root may read everything
            os.seteuid(65534)
        machine = look(root)
    finally:
        if uid == 0:
            os.seteuid(0)
        (root / "sys/class/infiniband").chmod(0o755)
    assert machine.os is None and machine.target == "skylake_avx512"
    assert said(machine, "no permission to read /etc/os-release")
    assert said(machine, "no permission to read /sys/class/infiniband")
