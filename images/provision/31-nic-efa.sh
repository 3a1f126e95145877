# AWS's EFA: the kernel module built for the image's kernel, rdma-core, libfabric, and on machines with
# GPUs the plug-in that takes NCCL over it. No MPI: that of the image is the release's.
# shellcheck shell=bash
# shellcheck source=images/provision/kernel-modules.sh
source "${KIT:?}/provision/kernel-modules.sh"

before=$(changes_so_far)
version=$(version_of efa-installer)
case ${OS:?} in
    rocky8) packages=RPMS/ROCKYLINUX8 ;;
    rocky9) packages=RPMS/ROCKYLINUX9 ;;
    rhel8*) packages=RPMS/RHEL8 ;;
    rhel9*) packages=RPMS/RHEL9 ;;
    ubuntu22.04) packages=DEBS/UBUNTU2204 ;;
    ubuntu24.04) packages=DEBS/UBUNTU2404 ;;
    debian12) packages=DEBS/DEBIAN12 ;;
    *)
        refuse "AWS's EFA installer has no packages for $OS" \
            "use one that it knows: rocky8, rocky9, rhel8, rhel9, ubuntu22.04, ubuntu24.04, debian12"
        ;;
esac
kernel_headers
install_packages pciutils

mark=/etc/mvapich-stack/efa-installer
if [[ ! -f $mark || $(<"$mark") != "$version" || ! -x /opt/amazon/efa/bin/fi_info ]]; then
    archive=$(fetch efa-installer)
    work=$(mktemp -d /var/tmp/efa-XXXXXX)
    tar -C "$work" -xzf "$archive"
    (
        cd "$work/aws-efa-installer"
        # --no-verify: the builder need have no adapter, and the first start looks for it.
        # --skip-limit-conf: limits are those of environments/policy/images.yaml.
        # --skip-kmod: the installer wants the headers of the kernel that runs now, which a repository
        # need not have any more; the module is built below, for the kernel that the image starts.
        flags=(--yes --no-verify --skip-limit-conf --skip-kmod)
        usage=$(./efa_installer.sh --help 2>&1) || true
        [[ $usage != *--skip-mpi* ]] || flags+=(--skip-mpi)
        [[ ${GPU_STACK:?} == nvidia || $usage != *--skip-plugin* ]] || flags+=(--skip-plugin)
        ./efa_installer.sh "${flags[@]}" >&2
    ) || refuse "AWS's EFA installer $version failed" "its own lines above say why"
    mapfile -t driver < <(find "$work/aws-efa-installer/$packages/x86_64/efa-driver" -type f \
        \( -name 'efa-[0-9]*.rpm' -o -name 'efa_[0-9]*.deb' \))
    [[ ${#driver[@]} == 1 ]] ||
        refuse "EFA installer $version has ${#driver[@]} packages of the kernel module below $packages/x86_64/efa-driver (expected 1)"
    case ${FAMILY:?} in
        rhel)
            # without its scripts, which build for the kernel that runs now
            rpm -U --quiet --noscripts "${driver[0]}"
            efa=$(rpm -q --qf '%{VERSION}' efa)
            [[ -d /usr/src/efa-$efa ]] ||
                refuse "package efa $efa brought no /usr/src/efa-$efa" "see \`rpm -ql efa\`"
            [[ -d /var/lib/dkms/efa/$efa ]] || dkms add -m efa -v "$efa" >&2
            ;;
        *)
            # its script builds for the kernel that runs now, too
            running=linux-headers-$(uname -r)
            if apt-cache show "$running" >/dev/null 2>&1; then install_packages "$running"; fi
            DEBIAN_FRONTEND=noninteractive apt-get -q -y install "${driver[0]}" >&2
            ;;
    esac
    rm -rf "$work"
    changed "EFA $version"
    echo "$version" | put "$mark"
fi

# An installer that cannot leave its own MPIs out put them, and their mpirun, before ours.
case ${FAMILY:?} in
    rhel)
        mapfile -t others < <(rpm -qa --qf '%{NAME}\n' 'openmpi*-aws*' 'prrte-aws*' 'pmix-aws*')
        remove=(dnf -q -y remove)
        ;;
    *)
        mapfile -t others < <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 'openmpi*-aws*' \
            'prrte-aws*' 'pmix-aws*' 2>/dev/null | sed -n 's/^installed //p')
        remove=(apt-get -q -y purge)
        ;;
esac
if [[ ${#others[@]} -gt 0 ]]; then
    "${remove[@]}" "${others[@]}" >&2
    changed "removed ${others[*]}"
fi

hold efa efa libfabric-aws libfabric-aws-devel libfabric1-aws libfabric-aws-bin libfabric-aws-dev \
    libnccl-ofi rdma-core rdma-core-devel libibverbs libibverbs1 ibverbs-providers libibverbs-utils \
    ibverbs-utils libibumad libibumad3 librdmacm librdmacm1 librdmacm-utils rdmacm-utils \
    infiniband-diags ibacm
dkms_build efa
need_module efa ours
need_module ib_uverbs
found=$(/opt/amazon/efa/bin/fi_info --version | sed -n 's/^libfabric: //p')
say "libfabric $found in /opt/amazon/efa"

[[ $(changes_so_far) == "$before" ]] || rebuild_initramfs
