# NVIDIA's DOCA-OFED: the mlx5 drivers built for the image's kernel, rdma-core and tools.
# It brings an Open MPI below /usr/mpi, which is on no path; the MPI of the image is the release's.
# shellcheck shell=bash
# shellcheck source=images/provision/kernel-modules.sh
source "${KIT:?}/provision/kernel-modules.sh"

before=$(changes_so_far)
version=$(version_of doca-host)
kernel_headers

case ${FAMILY:?} in
    rhel)
        install_packages kernel-abi-stablelists perl
        if [[ $(rpm -q --qf '%{VERSION}' doca-host 2>/dev/null) != "$version" ]]; then
            file=$(fetch doca-host)
            rpm -U --quiet "$file"
            dnf -q clean expire-cache
            changed "package doca-host $version"
        fi
        modules=(mlnx-ofa_kernel iser isert srp)
        ;;
    ubuntu)
        # the distribution's dkms, which is tested with its kernels, and not DOCA's copy
        put /etc/apt/preferences.d/mvapich-stack-doca <<'END'
Package: dkms
Pin: release l=DOCA-HOST*
Pin-Priority: -1
END
        if [[ $(dpkg-query -W -f '${Version}' doca-host 2>/dev/null) != "$version"* ]]; then
            file=$(fetch doca-host)
            dpkg -i "$file" >&2
            apt-get -q update >&2
            changed "package doca-host $version"
        fi
        modules=(mlnx-ofed-kernel iser isert srp)
        ;;
    *) refuse "DOCA is not installed on family $FAMILY here" "use nic_stack: inbox" ;;
esac
install_packages doca-ofed
if [[ $FAMILY == rhel ]]; then
    mapfile -t theirs < <(dnf -q repoquery --installed --qf '%{name} %{from_repo}\n' |
        awk '$2 ~ /^doca/ { print $1 }' | sort -u)
    [[ ${#theirs[@]} -gt 0 ]] || refuse "doca-ofed is installed, and nothing of it from DOCA's repository"
    hold doca "${theirs[@]}"
fi

# Where DOCA has modules ready for this kernel there is nothing to build; the check below decides.
for name in "${modules[@]}"; do
    if [[ -d /var/lib/dkms/$name ]]; then dkms_build "$name"; fi
done
for name in mlx5_core mlx5_ib ib_core ib_ipoib; do
    need_module "$name" ours
done
need_module ib_umad
need_module rdma_ucm

# openibd loads the drivers; it comes too early on VMs whose adapter is passed through late. Not by
# systemd-udev-settle.service, which fails, and with it the machine's state, where devices take long.
put /etc/systemd/system/openibd.service.d/90-mvapich-stack.conf <<'END'
[Service]
ExecStartPre=-/usr/bin/udevadm settle --timeout=120
Restart=on-failure
RestartSec=5
END
unit openibd.service enabled

[[ $(changes_so_far) == "$before" ]] || rebuild_initramfs
