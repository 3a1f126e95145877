# NVIDIA: driver with open kernel modules, fabric manager, CUDA, GDRCopy and NCCL. Nothing is loaded
# here, so that the builder need have no GPU; the first start looks for them.
# shellcheck shell=bash
# shellcheck source=images/provision/kernel-modules.sh
source "${KIT:?}/provision/kernel-modules.sh"

before=$(changes_so_far)
driver=$(version_of nvidia-driver)
cuda=$(version_of cuda-toolkit)
gdrcopy=$(version_of gdrcopy)
nccl=$(version_of nccl)
cuda_home=/usr/local/cuda-${cuda%.*}

kernel_headers
put /etc/modprobe.d/mvapich-stack-nouveau.conf <<'END'
# the free driver takes the GPUs first, and cannot compute
blacklist nouveau
options nouveau modeset=0
END

# --- driver. Open modules: what NVIDIA supports on H100, and what exports GPU memory as dma-buf.
if [[ ! -x /usr/bin/nvidia-smi || ! -d /usr/src/nvidia-$driver ]]; then
    file=$(fetch nvidia-driver)
    TMPDIR=/var/tmp sh "$file" --silent --dkms --kernel-module-type=open --kernel-name="$KERNEL" \
        --skip-module-load --no-x-check --no-nouveau-check --no-rebuild-initramfs \
        --no-install-compat32-libs >&2 ||
        refuse "NVIDIA's driver $driver was not installed" "see /var/log/nvidia-installer.log"
    changed "NVIDIA driver $driver"
fi
dkms_build nvidia
for name in nvidia nvidia-uvm; do
    need_module "$name"
done
[[ $(modinfo -k "$KERNEL" -F version nvidia) == "$driver" ]] ||
    refuse "the kernel module nvidia is $(modinfo -k "$KERNEL" -F version nvidia) (expected $driver)"

# What follows the driver, and so only where there is a GPU: CUDA programs want /dev/nvidia-uvm before the
# first of them asks for it, and MPI wants GDRCopy.
modules=(nvidia-uvm gdrdrv)
if [[ ${NIC_STACK:?} == doca ]]; then
    # RDMA to GPU memory: through OFED's peer memory where the kernel has no dma-buf for it (EL 8).
    # EFA needs none: its driver takes the open module's dma-buf.
    need_module nvidia-peermem
    modules+=(nvidia-peermem)
    put /etc/systemd/system/openibd.service.d/91-mvapich-stack-gpu.conf <<'END'
[Service]
# openibd may load the drivers anew, and this one hangs on them
ExecStartPost=-/usr/sbin/modprobe nvidia-peermem
END
fi
echo "softdep nvidia post: ${modules[*]}" | put /etc/modprobe.d/mvapich-stack-gpu.conf

# Keeps the driver's state while nobody computes: the next program starts in no time.
put /etc/systemd/system/nvidia-persistenced.service <<'END'
[Unit]
Description=NVIDIA persistence daemon
Wants=systemd-udev-settle.service
After=systemd-udev-settle.service
ConditionPathExists=/proc/driver/nvidia/version

[Service]
Type=forking
RuntimeDirectory=nvidia-persistenced
PIDFile=/run/nvidia-persistenced/nvidia-persistenced.pid
ExecStart=/usr/bin/nvidia-persistenced --persistence-mode
Restart=on-failure

[Install]
WantedBy=multi-user.target
END
unit nvidia-persistenced.service enabled

# --- fabric manager: with NVSwitch no CUDA program starts without it, and only of the driver's version
case ${MACHINE:?} in
    Standard_ND*_A100_v4 | Standard_ND96asr_v4 | Standard_ND*_H?00_v5 | p4d.* | p4de.* | p5.* | p5e.* | p5en.*)
        manager=$(version_of nvidia-fabricmanager)
        [[ ${manager%-*} == "$driver" ]] ||
            refuse "fabric manager $manager does not fit driver $driver" \
                "give both the same version in environments/policy/images.yaml"
        if [[ $(rpm -q --qf '%{VERSION}-%{RELEASE}' nvidia-fabricmanager 2>/dev/null) != "$manager" ]]; then
            file=$(fetch nvidia-fabricmanager)
            rpm -U --quiet "$file"
            changed "fabric manager $manager"
        fi
        # as shipped it waits for the target that waits for it, and systemd drops one of the two
        source=/usr/lib/systemd/system/nvidia-fabricmanager.service
        [[ -f $source ]] || refuse "the fabric manager's package brought no $source"
        sed '/^After=multi-user.target/d' "$source" |
            put /etc/systemd/system/nvidia-fabricmanager.service
        unit nvidia-fabricmanager.service enabled
        ;;
esac

# --- CUDA: of the version that MVAPICH-Plus is built for
if [[ ! -x $cuda_home/bin/nvcc ]]; then
    file=$(fetch cuda-toolkit)
    sh "$file" --silent --override --toolkit --toolkitpath="$cuda_home" --no-man-page \
        --tmpdir=/var/tmp >&2 ||
        refuse "CUDA $cuda was not installed" "see /var/log/cuda-installer.log"
    changed "CUDA $cuda in $cuda_home"
fi
if [[ $(readlink /usr/local/cuda) != "$cuda_home" ]]; then
    ln -sfn "$cuda_home" /usr/local/cuda
    changed /usr/local/cuda
fi

# --- GDRCopy: the processor reads and writes GPU memory itself, for small messages
work=$(mktemp -d /var/tmp/gpu-XXXXXX)
if [[ ! -e /opt/gdrcopy/lib/libgdrapi.so || ! -f /usr/src/gdrdrv-$gdrcopy/dkms.conf ]]; then
    archive=$(fetch gdrcopy)
    tar -C "$work" -xzf "$archive"
    make -C "$work/gdrcopy-$gdrcopy" CUDA="$cuda_home" prefix=/opt/gdrcopy lib lib_install >&2
    mkdir -p "/usr/src/gdrdrv-$gdrcopy"
    cp -R "$work/gdrcopy-$gdrcopy/src/gdrdrv/." "$work/gdrcopy-$gdrcopy/scripts" "/usr/src/gdrdrv-$gdrcopy/"
    changed "GDRCopy $gdrcopy in /opt/gdrcopy"
fi
put "/usr/src/gdrdrv-$gdrcopy/dkms.conf" <<END
PACKAGE_NAME="gdrdrv"
PACKAGE_VERSION="$gdrcopy"
BUILD_DEPENDS[0]="nvidia"
BUILT_MODULE_NAME[0]="gdrdrv"
DEST_MODULE_LOCATION[0]="/extra"
MAKE[0]="make KVER=\$kernelver NVIDIA_SRC_DIR=/usr/src/nvidia-$driver/nvidia CONF_SCRIPT_DIR=./scripts"
AUTOINSTALL="yes"
END
[[ -d /var/lib/dkms/gdrdrv/$gdrcopy ]] || dkms add -m gdrdrv -v "$gdrcopy" >&2
dkms_build gdrdrv
need_module gdrdrv
# the module registers a number and makes no device
put /usr/libexec/mvapich-stack/gdrdrv-device 0755 <<'END'
#!/bin/sh
# Makes /dev/gdrdrv with the number that the kernel gave the module, for everybody.
set -eu
major=$(awk '$2 == "gdrdrv" { print $1 }' /proc/devices)
[ -n "$major" ] || exit 0
rm -f /dev/gdrdrv
mknod -m 666 /dev/gdrdrv c "$major" 0
END
put /etc/systemd/system/mvapich-stack-gdrdrv.service <<'END'
[Unit]
Description=mvapich-stack: the device of GDRCopy
Wants=systemd-udev-settle.service
After=systemd-udev-settle.service
ConditionPathExists=/sys/module/gdrdrv

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/libexec/mvapich-stack/gdrdrv-device

[Install]
WantedBy=multi-user.target
END
unit mvapich-stack-gdrdrv.service enabled

# --- NCCL, for the GPUs that the machine has: sm_90 is H100 and H200. Over EFA its plug-in is AWS's, which
# 31-nic-efa.sh installed; over InfiniBand NCCL's own transport needs none.
mark=/opt/nccl/mvapich-stack-version
if [[ ! -f $mark || $(<"$mark") != "$nccl cuda $cuda" ]]; then
    archive=$(fetch nccl)
    tar -C "$work" -xzf "$archive"
    make -C "$work/nccl-$nccl" -j "$(nproc)" src.build CUDA_HOME="$cuda_home" \
        NVCC_GENCODE='-gencode=arch=compute_90,code=sm_90' >&2
    make -C "$work/nccl-$nccl" src.install CUDA_HOME="$cuda_home" \
        NVCC_GENCODE='-gencode=arch=compute_90,code=sm_90' PREFIX=/opt/nccl >&2
    changed "NCCL $nccl in /opt/nccl"
    echo "$nccl cuda $cuda" | put "$mark"
fi
rm -rf "$work"
before_ld=$(changes_so_far)
printf '%s\n' "$cuda_home/lib64" /opt/gdrcopy/lib /opt/nccl/lib | put /etc/ld.so.conf.d/mvapich-stack-gpu.conf
[[ $(changes_so_far) == "$before_ld" ]] || ldconfig

# Which GPU is near which adapter is not to be seen in the VM: the host's PCI tree is hidden. The facts are
# azhpc-images' (topology of ndv5): each GPU and the adapter of the same rail share a PCIe switch, four
# pairs to a socket, sockets of 48 cores.
topology_ndv5() {
    local gpus=(0001 0002 0003 0008 0009 000a 000b 000c) socket pair
    local masks=('00000000,0000ffff,ffffffff' 'ffffffff,ffff0000,00000000')
    local gen5='link_speed="32.0 GT/s PCIe" link_width="16"'
    echo '<system version="1">'
    for socket in 0 1; do
        echo "  <cpu numaid=\"$socket\" affinity=\"${masks[socket]}\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">"
        for ((pair = 4 * socket; pair < 4 * socket + 4; pair++)); do
            echo "    <pci busid=\"ffff:ff:0$((pair + 1)).0\" class=\"0x060400\" $gen5>"
            echo "      <pci busid=\"${gpus[pair]}:00:00.0\" class=\"0x030200\" $gen5/>"
            echo "      <pci busid=\"010$((pair + 1)):00:00.0\" class=\"0x020700\" $gen5/>"
            echo '    </pci>'
        done
        echo '  </cpu>'
    done
    echo '</system>'
}
if [[ ${MACHINE:?} == Standard_ND96is*_H?00_v5 ]]; then
    topology_ndv5 | put /etc/mvapich-stack/nccl-topology.xml
    put /etc/nccl.conf <<'END'
NCCL_TOPO_FILE=/etc/mvapich-stack/nccl-topology.xml
NCCL_IB_PCI_RELAXED_ORDERING=1
NCCL_IGNORE_CPU_AFFINITY=1
END
fi

[[ $(changes_so_far) == "$before" ]] || rebuild_initramfs
