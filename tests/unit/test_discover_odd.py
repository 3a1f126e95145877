"""Machines that are broken, empty or contradict themselves: said, never guessed, never raised."""

from __future__ import annotations

import os

import pytest
from discover_roots import data_of, kept, make, port, system_of, tool, without

from mvstack.discover import look, system_yaml, view
from mvstack.discover.capture import Capture
from mvstack.discover.gpu import CAPABILITY, stage_buffers
from mvstack.discover.machine import REQUIRED, Library, Machine
from mvstack.support.processes import Done


def said(machine, *words: str) -> bool:
    return any(all(word in note for word in words) for note in machine.notes)


@pytest.fixture
def root() -> Capture:
    """A machine of which nothing is known, to be added to."""
    return Capture()


def test_empty_root_invents_nothing(root):
    machine = look(root)
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


def test_port_down_is_said_and_not_used():
    root = kept("opa")
    without(root, "/sys/class/infiniband")
    port(root, "mlx5_0", state="1: DOWN", rate="10 Gb/sec (4X SDR)")
    machine = look(root)
    assert machine.fabric == "shm" and machine.nic is None
    assert said(machine, "mlx5_0", "port 1 is DOWN")
    assert "no active network adapter" in machine.how["fabric"]


def test_port_down_in_a_cluster_leaves_tcp():
    root = kept("gpu-v100")
    root.files["/sys/class/infiniband/mlx5_0/ports/1/state"] = "2: INIT\n"
    machine = look(root)
    assert machine.fabric == "tcp"
    assert said(machine, "port 1 is INIT") and said(machine, "look at the adapters")


def test_two_fabrics_the_fastest_active_is_taken_and_said():
    root = kept("opa")
    port(root, "mlx5_0", layer="Ethernet", rate="200 Gb/sec (4X HDR)")
    port(root, "mlx5_1", rate="400 Gb/sec (4X NDR)", state="1: DOWN")
    machine = look(root)
    assert (machine.fabric, machine.nic) == ("roce", "mlx5")
    assert said(machine, "more than one fabric", "roce (mlx5_0)", "hfi1_0 omni-path 100 Gbit/s")
    assert said(machine, "mlx5_1", "DOWN")
    assert said(machine, "lossless")


def test_same_rate_prefers_what_is_made_for_mpi(root):
    port(root, "mlx5_0", layer="Ethernet")
    port(root, "mlx5_1", layer="InfiniBand")
    assert look(root).fabric == "infiniband"


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
def test_adapters(root, device, driver, layer, node, fabric, nic):
    port(root, device, driver=driver, layer=layer, node=node)
    machine = look(root)
    assert (machine.fabric, machine.nic) == (fabric, nic)


def test_unknown_adapter_is_said(root):
    port(root, "newnic0", driver="newnic", layer="Unspecified")
    tool(root, "uname", "-m", text="x86_64\n")
    machine = look(root)
    assert machine.fabric == "shm"
    assert said(machine, "newnic0", "cannot be told")


def test_software_rdma_is_no_fabric(root):
    port(root, "rxe0", driver="", layer="Ethernet")
    tool(root, "uname", "-m", text="x86_64\n")
    machine = look(root)
    assert machine.fabric == "shm" and said(machine, "rxe0", "software")


def test_mlx5_ethernet_on_a_cray_hints_at_slingshot_10(root):
    port(root, "mlx5_0", layer="Ethernet")
    make(root, {"/opt/cray/pe/version": ""})
    machine = look(root)
    assert machine.fabric == "roce" and said(machine, "slingshot-10")


def test_aries(root):
    make(root, {"/dev/kgni0": ""})
    assert look(root).fabric == "aries"


def test_garbled_cpuinfo():
    root = kept("gpu-v100")
    root.files["/proc/cpuinfo"] = f"{os.urandom(3000)!r}\nprocessor : x\n\n: :\n"
    machine = look(root)
    assert machine.cores is None
    assert "processor" in machine.how["cores"]
    assert system_yaml(machine).count("# not found: fill in") == 1
    assert machine.fabric == "infiniband"


def test_a_processor_that_archspec_does_not_know_has_no_target():
    root = kept("opa")
    root.target = "zen17"
    machine = look(root)
    assert machine.target is None and "archspec" in machine.how["target"]


def test_os_release_missing():
    root = kept("opa")
    del root.files["/etc/os-release"]
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
def test_distributions(root, text, name):
    machine = look(make(root, {"/etc/os-release": text}))
    assert machine.os == name
    assert data_of(machine)["os"] == name


def test_affinity_and_quota_limit_cores():
    root = kept("alps")
    make(root, {"/proc/self/status": "Cpus_allowed_list:\t0-7,128-135\n"})
    machine = look(root)
    assert machine.cores == 8
    assert said(machine, "8 of 128 cores", "affinity")
    make(root, {"/sys/fs/cgroup/user.slice/cpu.max": "150000 100000\n"})
    assert look(root).cores == 1 and said(look(root), "1.5 CPUs")


def test_the_tightest_memory_limit_above_a_process_counts():
    root = kept("alps")
    make(
        root,
        {
            "/proc/self/cgroup": "0::/job/1\n",
            "/sys/fs/cgroup/job/1/memory.max": "max\n",
            "/sys/fs/cgroup/job/memory.max": f"{8 << 30}\n",
        },
    )
    machine = look(root)
    assert machine.memory_gb == 8
    assert said(machine, "cgroup limits memory to 8.0")


def test_mixed_gpus():
    root = kept("gpu-v100")
    kfd = "/sys/class/kfd/kfd/topology/nodes"
    make(root, {f"{kfd}/1/properties": "gfx_target_version 90010\ndevice_id 29704\n"})
    machine = look(root)
    assert (machine.gpu, machine.gpus) == ("nvidia", 4)
    assert said(machine, "several vendors", "4 nvidia, 1 amd")
    for node in (2, 3, 4):
        make(root, {f"{kfd}/{node}/properties": "gfx_target_version 90010\ndevice_id 29704\n"})
    machine = look(root)
    assert machine.gpu is None and machine.gpus is None
    assert "gpu: " in system_yaml(machine) and said(machine, "set gpu to the one")


def test_gpus_of_two_models():
    root = kept("gpu-v100")
    info = "/proc/driver/nvidia/gpus/0000:18:00.0/information"
    make(root, {info: "Model: \t\t NVIDIA A100-PCIE-40GB\n"})
    machine = look(root)
    assert machine.gpus == 4 and said(machine, "more than one model", "3 x Tesla V100")
    assert machine.gpu_arch == "sm_70"
    tool(root, *CAPABILITY.split(), text="7.0\n8.0\n7.0\n7.0\n")
    assert look(root).gpu_arch is None and "gpu_arch" not in system_yaml(look(root))


@pytest.mark.parametrize(
    ("fabric", "variants", "found"),
    [
        ("shm", None, "staged"),
        ("shm", "+cma +thread_multiple", "staged"),
        ("shm", "+cma +cuda +gdrcopy", None),
        ("infiniband", None, None),  # MVAPICH-Plus brings its own
    ],
)
def test_one_machine_without_a_ucx_for_its_gpus_stages_their_buffers(fabric, variants, found):
    """Else the first command would end, on every workstation with the distribution's UCX."""
    ucx = Library(name="ucx", prefix="/usr", variants=variants or "")
    machine = Machine(fabric=fabric, gpu="nvidia", externals=[ucx] if variants else [])
    stage_buffers(machine)
    assert machine.gpu_buffers == found


def test_gpu_without_its_driver_is_said_and_not_counted():
    root = kept("opa")
    card = "/sys/class/drm/card0/device"
    make(root, {f"{card}/vendor": "0x10de\n"}, {f"{card}/driver": "../nouveau"})
    machine = look(root)
    assert machine.gpu == "none" and said(machine, "nvidia", "nouveau", "not counted")


def test_intel_gpu_within_the_cpu_is_none(root):
    tool(root, "uname", "-m", text="x86_64\n")
    for card, address in (("card0", "0000:00:02.0"), ("card1", "0000:4d:00.0")):
        device = f"/sys/class/drm/{card}/device"
        make(
            root,
            {f"{device}/vendor": "0x8086", f"{device}/device": "0xbd5"},
            {device: f"../../../devices/{address}", f"{device}/driver": "../i915"},
        )
    assert (look(root).gpu, look(root).gpus) == ("intel", 1)


def test_nvidia_smi_that_fails_is_said():
    root = kept("gpu-v100")
    tool(root, "nvidia-smi", "-L", text="Driver/library version mismatch", status="18")
    assert said(look(root), "nvidia-smi is here and fails: Driver/library version mismatch")


def test_slurm_without_a_controller_does_not_count():
    root = kept("gpu-v100")
    error = "slurm_load_ctl_conf error: Unable to contact slurm controller (connect failure)"
    tool(root, "scontrol", "show", "config", text=error, status="1")
    machine = look(root)
    assert (machine.scheduler, machine.launcher, machine.pmi) == ("none", "hydra", None)
    assert said(machine, "controller does not answer", "connect failure")


def test_slurm_that_hangs_is_said():
    root = kept("gpu-v100")
    tool(root, "scontrol", "show", "config", text="", status="timeout")
    machine = look(root)
    assert machine.scheduler == "none" and said(machine, "did not answer in time")


def test_slurm_with_unknown_pmi():
    root = kept("gpu-v100")
    tool(root, "scontrol", "show", "config", text="MpiDefault = none\n")
    tool(root, "srun", "--mpi=list", text="MPI plugin types are...\n\tnone\n")
    machine = look(root)
    assert machine.pmi is None and said(machine, "N singletons")


def test_flux_without_an_instance_does_not_count():
    root = kept("mi250x-flux")
    root.environment.clear()
    assert look(root).scheduler == "none" and said(look(root), "no instance")


@pytest.mark.parametrize(
    ("command", "text", "extra", "scheduler", "launcher"),
    [
        (("qstat", "--version"), "pbs_version = 2022.1.1", "", "pbs", "hydra"),
        (("qstat", "--version"), "pbs_version = 2022.1.1", "palstat", "pbs", "pals"),
        (("qstat", "--version"), "Version: 6.1.2\nCommit: 661e092", "", "torque", "hydra"),
        (("lsid",), "IBM Spectrum LSF Standard 10.1.0.9, Oct 16 2019", "jsrun", "lsf", "jsrun"),
        (("lsid",), "IBM Spectrum LSF Standard 10.1.0.9, Oct 16 2019", "", "lsf", "hydra"),
    ],
)
def test_other_schedulers(root, command, text, extra, scheduler, launcher):
    tool(root, *command, text=text)
    if extra:
        root.tools[extra] = f"/opt/bin/{extra}"
    machine = look(root)
    assert (machine.scheduler, machine.launcher) == (scheduler, launcher)


def test_two_schedulers_are_said():
    root = kept("gpu-v100")
    tool(root, "lsid", text="IBM Spectrum LSF Standard 10.1.0.9")
    machine = look(root)
    assert machine.scheduler == "slurm" and machine.how["launcher"] == "scheduler slurm"
    assert said(machine, "more than one scheduler")


def test_gcc_that_is_clang_is_said():
    root = kept("opa")
    tool(root, "gcc", "--version", text="Apple clang version 15.0.0\n")
    machine = look(root)
    assert machine.compiler is None and said(machine, "gcc is here and is no GNU compiler")


def test_mixed_gcc_versions_are_said_and_a_whole_set_is_taken():
    root = kept("opa")
    tool(root, "gfortran", "--version", text="GNU Fortran (GCC) 12.2.0\n")
    for name in ("gcc", "g++"):
        tool(root, f"{name}-13", "--version", text=f"{name}-13 (Debian 13.2.0-1) 13.2.0\n")
    tool(root, "gfortran-13", "--version", text="GNU Fortran (Debian 13.2.0-1) 13.2.0\n")
    machine = look(root)
    assert machine.compiler.path == "/usr/bin/gcc-13" and said(machine, "give `prefix: DIR`")
    assert said(machine, "not of one set") and said(machine, "was taken")
    assert system_of(machine).partitions["node"].compiler.version == "13.2.0"


def test_the_prefix_of_a_module_s_gcc_is_kept():
    root = kept("azure-hbv4")
    assert "prefix" not in data_of(look(root))["partitions"]["node"]["compiler"]
    root.tools["gcc"] = "/opt/rh/gcc-toolset-13/root/usr/bin/gcc"
    compiler = system_of(look(root)).partitions["node"].compiler
    assert compiler.prefix == "/opt/rh/gcc-toolset-13/root/usr"


def test_pmix_of_debian_is_below_the_library_folder():
    root = kept("opa")
    lib = "/usr/lib/x86_64-linux-gnu"
    make(root, {f"{lib}/pmix2/include/pmix.h": "", f"{lib}/pkgconfig/pmix.pc": "Version: 4.2.2\n"})
    pmix = system_of(look(root)).partitions["node"].externals["pmix"]
    assert (pmix.prefix, pmix.version) == (f"{lib}/pmix2", "4.2.2")


def test_link_out_of_the_root_is_not_followed(tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").symlink_to("/etc/os-release")
    (tmp_path / "proc").symlink_to("/proc")
    machine = look(tmp_path)
    assert machine.os is None and machine.cores is None


def test_folders_where_files_should_be(tmp_path):
    for path in ("proc/cpuinfo", "etc/os-release", "proc/meminfo", "sys/class/infiniband/m/ports"):
        (tmp_path / path).mkdir(parents=True)
    assert look(tmp_path).cores is None


def test_no_permission_is_said(tmp_path):
    for folder in ("etc", "sys/class/infiniband", "sys/class/net"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "etc/os-release").write_text("ID=debian\n")
    for folder in (tmp_path, *tmp_path.parents):  # pytest's folders are its user's alone
        if folder.name.startswith(("pytest-", "popen-", "test_")):
            folder.chmod(0o755)
    (tmp_path / "etc/os-release").chmod(0)
    (tmp_path / "sys/class/infiniband").chmod(0)
    uid = os.geteuid()
    try:
        if uid == 0:  # root may read everything
            os.seteuid(65534)
        machine = look(tmp_path)
    finally:
        if uid == 0:
            os.seteuid(0)
        (tmp_path / "sys/class/infiniband").chmod(0o755)
    assert machine.os is None and "class" not in machine.how["fabric"]
    assert said(machine, "no permission to read /etc/os-release")
    assert said(machine, "no permission to read /sys/class/infiniband")


def test_ethernet_of_an_azure_machine_is_no_roce():
    assert said(look(kept("azure-hbv4")), "mlx5_an0", "accelerated networking")


def test_ethernet_of_azure_on_arm_is_no_roce():
    root = without(kept("aws-hpc7g"), "/sys/class/infiniband")
    port(root, "mlx5_0", layer="Ethernet")
    dmi = "/sys/class/dmi/id"
    names = {"sys_vendor": "Microsoft Corporation", "product_name": "Virtual Machine"}
    make(root, {f"{dmi}/{name}": text for name, text in names.items()})
    assert look(root).fabric == "shm" and said(look(root), "mlx5_0", "accelerated networking")


def test_gpus_that_a_job_may_not_read_are_not_none():
    root = kept("mi250x-flux")
    shut = [path for path in root.files if "/kfd/" in path]
    shut = [path for path in shut if "gfx_target_version 0" not in root.files[path]]
    root = root.model_copy(update={"denied": set(shut)})
    machine = look(root)
    assert shut and machine.gpu is None and "run it in a job with GPUs" in machine.how["gpu"]


def test_what_the_loader_says_of_a_preload_is_no_answer(monkeypatch):
    told = b"ERROR: ld.so: object 'x' from LD_PRELOAD cannot be preloaded: ignored.\n"
    monkeypatch.setattr(view, "run", lambda *_, **__: Done(0, b"x86_64\n", told + b"srun: x\n"))
    assert view.ask(["uname", "-m"]).said == "x86_64\nsrun: x\n"


def test_all_gpus_of_a_node_of_mi300a(root):
    nodes = "/sys/class/kfd/kfd/topology/nodes"
    for node in range(4):
        make(root, {f"{nodes}/{node}/properties": "gfx_target_version 90402\ndevice_id 29856\n"})
    assert (look(root).gpu, look(root).gpus) == ("amd-mi300a", 4)


@pytest.mark.parametrize(
    ("files", "links"),
    [
        (
            {"/sys/class/accel/accel0/x": ""},
            {"/sys/class/accel/accel0/device/driver": "habanalabs"},
        ),
        ({"/sys/class/habanalabs/hl0/x": ""}, {}),
    ],
)
def test_gaudi_by_its_new_and_its_old_driver(root, files, links):
    assert (look(make(root, files, links)).gpu, look(root).gpus) == ("gaudi", 1)


def test_a_pod_of_kubernetes_is_hinted_at(root):
    tool(root, "uname", "-m", text="x86_64\n")
    root.environment["KUBERNETES_SERVICE_HOST"] = "10.0.0.1"
    assert said(look(root), "Kubernetes", "mpijob")


def test_a_library_without_headers_is_no_external():
    root = kept("opa")
    tool(root, "ucx_info", "-v", text="# Library version: 1.11.2\n")
    machine = look(root)
    assert "ucx" not in system_of(machine).partitions["node"].externals


def test_rdma_core_is_the_end_of_libibverbs_version(root):
    pc = "/usr/lib64/pkgconfig/libibverbs.pc"
    make(root, {"/usr/include/infiniband/verbs.h": "", pc: "Version: 1.14.43.0\n"})
    assert [(one.name, one.version) for one in look(root).externals] == [("rdma-core", "43.0")]


@pytest.mark.parametrize(("scope", "cma"), [("0", True), ("1", False), ("2", False), ("", True)])
def test_ptrace_scope_is_said(root, scope, cma):
    make(root, {"/proc/sys/kernel/yama/ptrace_scope": scope + "\n"})
    machine = look(root)
    assert said(machine, f"ptrace_scope is {scope}") is not cma
    assert data_of(machine)["partitions"]["node"].get("cma", True) is cma


def test_efa_uses_amazons_libfabric(root):
    make(root, {f"/opt/amazon/efa/{name}": "" for name in ("include/rdma/fabric.h", "lib64/x")})
    tool(root, "fi_info", "-l", text="efa:\n    version: 118.2\nofi_hook_noop:\n")
    root.tools["fi_info"] = "/opt/amazon/efa/bin/fi_info"
    [libfabric] = look(root).externals
    assert (libfabric.prefix, libfabric.providers) == ("/opt/amazon/efa", ["efa"])


def test_another_compiler_alone_is_named_and_gcc_asked_for(root):
    tool(root, "clang", "--version", text="Debian clang version 19.1.7 (3)\n")
    machine = look(root)
    (problem,) = [one for one in machine.problems() if one.message == "compiler was not found"]
    assert "no gcc on PATH; " in problem.because and problem.because.endswith("clang is clang")
    assert "install gcc, g++ and gfortran" in problem.todo
