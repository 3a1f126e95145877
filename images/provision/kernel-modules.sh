# What the steps share that build kernel modules; sourced by them, no step of its own.
# Modules are built for KERNEL, which the image starts, and that is seldom the kernel that runs now.
# shellcheck shell=bash

# A container has no kernel of its own, and then there is nothing to see to; a machine's base always has.
has_kernel() {
    [[ -n $KERNEL ]] || { say "no kernel is installed here: nothing to see to for it" && return 1; }
}

version_of() { # version_of ID: prints the version that the table of downloads names
    local row version
    for row in "${DOWNLOADS[@]}"; do
        [[ $row == "$1 "* ]] || continue
        read -r _ version _ <<<"$row"
        echo "$version"
        return
    done
    refuse "$1 is not in the table of downloads for this image" \
        "add it to environments/policy/images.yaml with version, URL, SHA-256 and source"
}

kernel_headers() { # what modules of KERNEL are compiled with
    local package
    case ${FAMILY:?} in
        rhel) package=kernel-devel-${KERNEL:?} ;;
        *) package=linux-headers-${KERNEL:?} ;;
    esac
    (install_packages "$package") ||
        refuse "$package cannot be obtained, and without it no module can be built for the kernel that the image starts" \
            "name a newer base: distributions drop the headers of kernels that they replaced (aws-parallelcluster issue 7406)"
    [[ -e /lib/modules/$KERNEL/build/Makefile ]] ||
        refuse "/lib/modules/$KERNEL/build holds no headers, though $package is installed"
}

# dkms_build NAME…: those modules, built and installed for KERNEL, in this order.
dkms_build() {
    local name version
    for name in "$@"; do
        version=$(find "/var/lib/dkms/$name" -mindepth 1 -maxdepth 1 -type d ! -name 'kernel-*' \
            -printf '%f\n' 2>/dev/null | sort -V | tail -n 1) || true
        [[ -n $version ]] || refuse "DKMS has no sources of $name" "see what its package installed"
        if ! dkms_has "$name" "$version"; then
            say "building $name $version for $KERNEL"
            dkms install --force -m "$name" -v "$version" -k "$KERNEL" >&2 || dkms_log "$name" "$version"
            dkms_has "$name" "$version" || dkms_log "$name" "$version"
            changed "kernel module $name $version for $KERNEL"
        fi
    done
}

dkms_has() { # dkms_has NAME VERSION: built and installed for KERNEL?
    [[ $(dkms status -m "$1" -v "$2" -k "$KERNEL" 2>/dev/null) == *installed* ]]
}

dkms_log() {
    tail -n 30 "/var/lib/dkms/$1/$2/build/make.log" >&2 2>/dev/null || true
    refuse "$1 $2 could not be built for kernel $KERNEL" \
        "see the lines above, and whether this version knows that kernel"
}

# need_module NAME [ours]: KERNEL has that module; `ours`: built here, not the kernel's own.
need_module() {
    local file
    has_kernel || return 0
    file=$(modinfo -k "${KERNEL:?}" -F filename "$1" 2>/dev/null) || file=''
    [[ -n $file ]] || refuse "kernel $KERNEL has no module $1"
    if [[ ${2:-} == ours && $file == */kernel/* && $file != */extra/* && $file != */updates/* ]]; then
        refuse "kernel $KERNEL would load its own $1 ($file) and not the one that was built"
    fi
}

# The early file system may hold the kernel's own copy of a module that was replaced.
rebuild_initramfs() {
    has_kernel || return 0
    depmod -a "${KERNEL:?}"
    case ${FAMILY:?} in
        rhel) dracut --force --kver "$KERNEL" ;;
        *) update-initramfs -u -k "$KERNEL" >&2 ;;
    esac
    changed "initramfs of $KERNEL"
}

changes_so_far() { wc -l <"${CHANGES:?}"; }

# hold GROUP NAME…: those of the packages that are installed stay at the version that they have. The
# distribution may offer a newer one of its own, which is not the one that drivers and NICs go with.
hold() {
    local group=$1 name held lock=()
    shift
    case ${FAMILY:?} in
        rhel)
            install_packages python3-dnf-plugin-versionlock
            for name in "$@"; do
                has_package "$name" || continue
                lock+=("$(rpm -q --qf '%{NAME}-%{EPOCHNUM}:%{VERSION}-%{RELEASE}.*\n' "$name" | sort -u)")
            done
            printf '%s\n' "${lock[@]}" |
                block /etc/dnf/plugins/versionlock.list "mvapich-stack $group"
            ;;
        *)
            held=$'\n'$(apt-mark showhold)$'\n'
            for name in "$@"; do
                has_package "$name" || continue
                [[ $held != *$'\n'"$name"$'\n'* ]] || continue
                apt-mark hold "$name" >/dev/null
                changed "package $name is held"
            done
            ;;
    esac
}
