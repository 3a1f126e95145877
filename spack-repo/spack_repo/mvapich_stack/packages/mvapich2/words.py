"""Words of the recipe's variants and what configure of MVAPICH2 2.3.7 calls them.

Read from configure.ac and the subconfigure.m4 files of tag v2.3.7 of the public import.
"""

# Variant `fabrics` → --with-device.
DEVICES = {
    "mrail": "ch3:mrail",
    "psm": "ch3:psm",
    "psm2": "ch3:psm",
    "sock": "ch3:sock",
    "nemesis": "ch3:nemesis",
    "nemesistcp": "ch3:nemesis:tcp",
    "nemesisib": "ch3:nemesis:ib",
    "nemesisibtcp": "ch3:nemesis:ib,tcp",
    "nemesistcpib": "ch3:nemesis:tcp,ib",
    "nemesisofi": "ch3:nemesis:ofi",
}
VERBS = ("mrail", "nemesisib", "nemesisibtcp", "nemesistcpib")

# Process managers of the source that may be built together; the first brings `mpiexec`.
# mpirun is the folder of mpirun_rsh.
MANAGERS = ("hydra", "mpirun", "gforker", "remshell")

FILE_SYSTEMS = (
    "gpfs",
    "gridftp",
    "hfs",
    "ime",
    "lustre",
    "nfs",
    "panfs",
    "pfs",
    "piofs",
    "pvfs",
    "pvfs2",
    "sfs",
    "testfs",
    "ufs",
    "xfs",
    "zoidfs",
)

# Variants of fabrics=mrail → the option for "on" and for "off"; "" where saying nothing is that.
# Four options do the same however they are spelled: any --enable-hsam or --disable-hsam switches
# hot-spot avoidance on, any --enable-xrc or --disable-xrc switches XRC off, any --enable-ibv-dlopen
# or --disable-ibv-dlopen links libibverbs, any --enable-omb or --disable-omb leaves the
# benchmarks out (configure.ac and mrail's subconfigure.m4).
MRAIL = {
    "cma": ("", "--without-cma"),
    "hsam": ("--enable-hsam", ""),
    "hybrid": ("--enable-hybrid", "--disable-hybrid"),
    "ibv_dlopen": ("", "--disable-ibv-dlopen"),
    "limic2": ("--with-limic2", "--without-limic2"),
    "mcast": ("--enable-mcast", "--disable-mcast"),
    "multi_subnet": ("--enable-multi-subnet", "--disable-multi-subnet"),
    "rdma_cm": ("--enable-rdma-cm", "--disable-rdma-cm"),
    "sharp": ("--enable-sharp", "--disable-sharp"),
    "torus3d": ("--enable-3dtorus-support", "--disable-3dtorus-support"),
    "xrc": ("", "--disable-xrc"),
}
