"""MVAPICH-Plus: GPU-aware MVAPICH, given out as binary packages only.

The RPMs are called

    mvapich-plus-V-{nogpu|cudaX|rocmX}.rhel{8|9}.ofed24.10.{ofi|ucx}.COMPILER[.slurm][.mi300a]-V-1…

by the installer script that Spack's own recipe of July 2026 runs. Which of them exist is published
nowhere. CONFIRMED holds what was seen of GPU toolkits and compilers; the rest is *unconfirmed*.
"""

import os
import re

from spack_repo.builtin.build_systems.generic import Package
from spack_repo.mvapich_stack.build_systems.mpich_based import MpichBased
from spack_repo.mvapich_stack.build_systems.rpm_by_hand import PAGE, RpmByHand

from spack.package import *

# (version, gpu) → the toolkit that was seen in a name of that version; "" where none was seen.
CONFIRMED = {
    # mvapich-plus-4.1-cuda12.4.rhel9.mofed24.10.ofi.gcc13.2.0.slurm (a guide for Perlmutter)
    ("4.1", "cuda"): "12.4",
    ("4.1", "rocm"): "",
    ("4.1", "mi300a"): "",
    # mvapich-plus-cuda12.9.1-gnu-5.0.0-1.t4, mvapich-plus-rocm6.4.3-gnu-5.0.0-1 (LLNL, TOSS 4);
    # upstream's recipe writes CUDA's number with one dot
    ("5.0.0", "cuda"): "12.9",
    ("5.0.0", "rocm"): "6.4.3",
    ("5.0.0", "mi300a"): "6.4.3",
}
# The variant that names the toolkit, and the package that it is.
TOOLKITS = {
    "cuda": ("cuda_version", "cuda"),
    "rocm": ("rocm_version", "hip"),
    "mi300a": ("rocm_version", "hip"),
}
# In the names of 4.1 and of its release candidate; of 5.0.0 only "gnu" is known.
COMPILER = "gcc13.2.0"

EL = {"8": ("rhel8", "rocky8", "almalinux8", "centos8"), "9": ("rhel9", "rocky9", "almalinux9")}

INSTALLER = "mvapich-plus-installer.sh"


class MvapichPlus(RpmByHand, MpichBased, Package):
    """MVAPICH-Plus: MPI for GPUs by The Ohio State University, as binaries for EL 8 and 9.

    Nothing of it is fetched for you: put the RPM (or, with `rpm=installer`, the installer script)
    into a source mirror, or declare the site's own installation as an external.
    """

    homepage = "https://mvapich.cse.ohio-state.edu/"
    url = (
        "https://mvapich.cse.ohio-state.edu/download/mvapich/plus/5.0.0/mvapich-plus-installer.sh"
    )
    list_url = PAGE
    manual_download = True
    mirror_folder = "mvapich-plus"
    executables = ["^mpichversion$"]

    # Closed source; its terms come with the RPM and were not read.
    license("LicenseRef-MVAPICH-Plus")

    # The hashes are those of the installer script; no hash of an RPM is published.
    version(
        "5.0.0",
        sha256="23170011b09f10916782245ad5975567d5f76ae0db8602f5d2cda889186753c2",
        expand=False,
    )
    version(
        "4.1",
        sha256="891b98563216222bd12171ec9ace4a831eef73094f3705a4635bb6104cdfb465",
        expand=False,
    )

    provides("mpi@:4.1")

    variant(
        "netmod",
        default="ucx",
        values=("ofi", "ucx"),
        multi=False,
        description="Transport: ucx for InfiniBand and RoCE, ofi for what libfabric serves",
    )
    variant(
        "gpu",
        default="none",
        values=("none", "cuda", "rocm", "mi300a"),
        multi=False,
        description="GPU buffers; mi300a: the ROCm packages for the APU",
    )
    # builtin's recipes beatnik and sphexa ask for these two words
    variant("cuda", default=False, description="The same as gpu=cuda")
    variant("rocm", default=False, description="The same as gpu=rocm or gpu=mi300a")
    variant(
        "process_managers",
        default="hydra",
        values=("hydra", "slurm", "none"),
        multi=False,
        description="What starts the ranks; slurm: srun, none: another resource manager",
    )
    variant(
        "el",
        default="8",
        values=("8", "9"),
        multi=False,
        description="Release of Enterprise Linux",
    )
    variant(
        "ofed", default="24.10", values=("24.10",), multi=False, description="OFED it was built on"
    )
    variant(
        "cuda_version", default="auto", description="CUDA in the RPM's name; auto: the confirmed"
    )
    variant(
        "rocm_version", default="auto", description="ROCm in the RPM's name; auto: the confirmed"
    )
    variant("compiler", default=COMPILER, description="Compiler in the RPM's name")
    variant(
        "unconfirmed",
        default=False,
        sticky=True,  # a person says so, never the solver
        description="Take a combination of which no published package is known",
    )
    variant(
        "rpm",
        default="mirror",
        values=("mirror", "installer"),
        multi=False,
        description="Who brings the RPM: you, into a mirror; or upstream's script, unverified",
    )

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", type="build")
    depends_on("libfabric", when="netmod=ofi")
    depends_on("ucx", when="netmod=ucx")
    depends_on("ucx +cuda", when="netmod=ucx gpu=cuda")
    depends_on("ucx +rocm", when="netmod=ucx +rocm")
    for _word in ("verbs", "rc", "dc", "ud", "mlx5_dv", "rdmacm", "cma", "thread_multiple"):
        conflicts(f"^ucx ~{_word}", when="netmod=ucx", msg=f"use ucx +{_word}: it is for OFED")
    depends_on("slurm", when="process_managers=slurm")
    depends_on("libpciaccess")
    depends_on("libxml2")
    depends_on("zlib-api")

    for _target in ("aarch64:", "ppc64le:"):
        # A conflict and no requirement, which would hold for a site's own installation too.
        conflicts(
            f"target={_target}",
            msg="MVAPICH-Plus is given out for x86_64 only: use mvapich, built from source",
        )
    requires("+cuda", when="gpu=cuda", msg="use gpu=cuda, or +cuda alone")
    requires("gpu=cuda", when="+cuda", msg="+cuda is gpu=cuda: leave one of them out")
    for _gpu in ("rocm", "mi300a"):
        requires("+rocm", when=f"gpu={_gpu}", msg=f"use gpu={_gpu}, or +rocm alone")
    requires(
        "gpu=rocm", "gpu=mi300a", when="+rocm", msg="+rocm is gpu=rocm or gpu=mi300a: set one"
    )
    for _release, _systems in EL.items():
        for _system in _systems:
            conflicts(  # and no requirement, as above
                f"el={'9' if _release == '8' else '8'}",
                when=f"os={_system}",
                msg=f"the RPM must be that of the system: use el={_release} on {_system}",
            )

    with when("~unconfirmed"):
        requires(
            f"compiler={COMPILER}",
            msg=f"unconfirmed: no RPM of another compiler than {COMPILER} is known; use "
            f"compiler={COMPILER}, or +unconfirmed if you have the file",
        )
        for (_version, _gpu), _seen in CONFIRMED.items():
            if _seen:
                requires(
                    f"{TOOLKITS[_gpu][0]}=auto",
                    f"{TOOLKITS[_gpu][0]}={_seen}",
                    when=f"@={_version} gpu={_gpu}",
                    msg=f"unconfirmed: of {_version} only the RPM of {_seen} is known for "
                    f"gpu={_gpu}; use {TOOLKITS[_gpu][0]}={_seen}, or +unconfirmed if you have "
                    "the file",
                )
            else:
                conflicts(
                    f"gpu={_gpu}",
                    when=f"@={_version}",
                    msg=f"unconfirmed: no RPM of {_version} with gpu={_gpu} is known; use 5.0.0, "
                    "or +unconfirmed if you have the file",
                )

    for (_version, _gpu), _seen in CONFIRMED.items():
        if _seen:
            for _word in ("auto", _seen):
                # within one major version the toolkit's libraries keep their names
                depends_on(
                    f"{TOOLKITS[_gpu][1]}@{_seen.split('.')[0]}",
                    when=f"@={_version} gpu={_gpu} {TOOLKITS[_gpu][0]}={_word}",
                )
    depends_on("cuda", when="gpu=cuda +unconfirmed")
    depends_on("hip", when="+rocm +unconfirmed")

    # --- a build of the site's own, as an external --------------------------------------------

    @classmethod
    def determine_version(cls, exe):
        """The version, from `mpichversion`; None for MVAPICH, which says the same of itself.

        The two are told apart by the folder: that of the RPM is …/mvapich/plus/…
        """
        said = re.search(
            r"^MVAPICH(-Plus)? Version\s*:\s*(\S+)", Executable(exe)(output=str, error=str), re.M
        )
        if said and (said.group(1) or re.search(r"mvapich[-_/]?plus", os.path.realpath(exe))):
            return said.group(2)
        return None

    @classmethod
    def determine_variants(cls, exes, version):
        """Netmod, GPU and launcher, from what each build says of itself and has."""
        found = []
        for exe in exes:
            prefix = os.path.dirname(os.path.dirname(os.path.realpath(exe)))
            hydra = os.path.exists(os.path.join(prefix, "bin", "mpiexec.hydra"))
            hydra = hydra or os.path.exists(os.path.join(prefix, "bin", "mpiexec"))
            text = Executable(exe)(output=str, error=str)
            found.append(" ".join(cls.variants_said(text, prefix, hydra)))
        return found

    @classmethod
    def variants_said(cls, text, prefix, hydra):
        """Variants from the text of `mpichversion`, the prefix, and whether hydra is there."""
        said = []
        device = re.search(r"Device\s*:\s*ch4:(ofi|ucx)", text)
        if device:
            said.append(f"netmod={device.group(1)}")
        cuda = re.search(r"cuda(\d+\.\d+)", prefix)
        rocm = re.search(r"rocm(\d+(?:\.\d+)*)", prefix)
        if cuda or re.search(r"--with-cuda(?!=no)", text):
            said += ["gpu=cuda +cuda ~rocm"]
            said += [f"cuda_version={cuda.group(1)}"] if cuda else []
        elif rocm or re.search(r"--with-(rocm|hip)(?!=no)", text):
            said += [f"gpu={'mi300a' if 'mi300a' in prefix else 'rocm'} +rocm ~cuda"]
            said += [f"rocm_version={rocm.group(1)}"] if rocm else []
        else:
            said += ["gpu=none ~cuda ~rocm"]
        said.append("process_managers=" + ("hydra" if hydra else "slurm"))
        release = re.search(r"(?:rhel|\.el)([89])", prefix)
        said += [f"el={release.group(1)}"] if release else []
        compiler = re.search(r"gcc\d+(?:\.\d+)*", prefix)
        said += [f"compiler={compiler.group(0)}"] if compiler else []
        return said + ["+unconfirmed"]  # what a site has needs no confirmation of ours

    # --- sources ------------------------------------------------------------------------------

    def url_for_version(self, version):
        """Each release has its own installer script below its number."""
        return f"https://mvapich.cse.ohio-state.edu/download/mvapich/plus/{version}/{INSTALLER}"

    @property
    def has_code(self):
        """Only the installer is staged; the RPM is taken from a mirror when it is unpacked.

        Whether the spec is concrete may not count: Spack takes the package's hash just before.
        """
        return "rpm" not in self.spec.variants or self.spec.satisfies("rpm=installer")

    def do_fetch(self, mirror_only=False):
        """Look into mirrors alone. Spack would fetch by the url even what is to be had by hand."""
        super().do_fetch(mirror_only=True)

    @property
    def download_instr(self):
        """What to do when the installer script is in no mirror."""
        digest = self.versions[self.version]["sha256"]
        return (
            f"MVAPICH-Plus is downloaded by hand.\n"
            f"page      {PAGE}\n"
            f"file      {INSTALLER} of {self.version} ({self.url_for_version(self.version)})\n"
            f"put it    <mirror>/_source-cache/archive/{digest[:2]}/{digest}.sh\n"
            f"or        use rpm=mirror and put the RPM itself into a mirror:\n"
            f"          <mirror>/{self.mirror_folder}/{self.file_name()}"
        )

    def toolkit(self):
        """``nogpu``, ``cuda12.9``, ``rocm6.4.3``: the RPM's word for the GPU."""
        gpu = self.spec.variants["gpu"].value
        if gpu == "none":
            return "nogpu"
        kind = "cuda" if gpu == "cuda" else "rocm"
        number = self.spec.variants[f"{kind}_version"].value
        if number == "auto":
            number = CONFIRMED.get((str(self.version), gpu), "")
        if not number:
            raise InstallError(
                f"no RPM of {self.version} for gpu={gpu} is known, so none can be named",
                f"to do     set {kind}_version to what stands in the name of your file",
            )
        return f"{kind}{number}"

    def file_name(self):
        """The RPM's name, by upstream's pattern."""
        words, number = self.spec.variants, str(self.version)
        parts = [
            f"mvapich-plus-{number}-{self.toolkit()}",
            f"rhel{words['el'].value}",
            f"ofed{words['ofed'].value}",
            words["netmod"].value,
            words["compiler"].value,
        ]
        parts += ["slurm"] if self.spec.satisfies("process_managers=slurm") else []
        parts += ["mi300a"] if self.spec.satisfies("gpu=mi300a") else []
        return f"{'.'.join(parts)}-{number}-1.el{words['el'].value}.x86_64.rpm"

    def more_to_say(self):
        """The name is composed; say what of it nobody confirmed."""
        lines = ["if the page has the RPM under another name, store it under this one"]
        if str(self.version) != "4.1":
            lines.append(
                f"note      the compiler ({self.spec.variants['compiler'].value}) is confirmed "
                "for 4.1 only"
            )
        return lines

    # --- installing ---------------------------------------------------------------------------

    def install(self, spec, prefix):
        """Unpack the RPM, or let upstream's script fetch and unpack it."""
        self.refuse_other_systems()
        if spec.satisfies("rpm=mirror"):
            self.move_in(self.unpack(self.rpm_in_mirror(), os.path.join("bin", "mpicc")), prefix)
            return
        script = os.path.join(self.stage.source_path, INSTALLER)
        rpm2cpio = which("rpm2cpio", required=True).path
        which("bash", required=True)(
            script, f"--prefix={prefix}", f"--io={rpm2cpio}", f"--rpm={self.file_name()}"
        )
        if not os.path.exists(os.path.join(prefix, "bin", "mpicc")):
            raise InstallError(
                f"upstream's installer ended without {self.file_name()}",
                f"the RPM may not exist: see {PAGE}, where a form asks for one; or use rpm=mirror",
            )

    def refuse_other_systems(self, release="/etc/os-release"):
        """Raises InstallError where the RPM's libraries would not find theirs."""
        text = ""
        if os.path.exists(release):
            with open(release, encoding="utf-8") as opened:
                text = opened.read()
        number = re.search(r'^VERSION_ID="?(\d+)', text, re.M)
        like = re.search(r"^(ID|ID_LIKE)=.*\b(rhel|centos|rocky|almalinux)\b", text, re.M)
        wanted = self.spec.variants["el"].value
        if not like or number is None or number.group(1) != wanted:
            name = re.search(r'^PRETTY_NAME="?([^"\n]*)', text, re.M)
            raise InstallError(
                f"these binaries are for Enterprise Linux {wanted}; this is "
                f"{name.group(1) if name else 'something else'}",
                "to do     use el=8 or el=9 as this system is, or on any other system mvapich,"
                " built from source with +cuda or +rocm",
            )
