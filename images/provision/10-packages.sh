# The distribution's packages: its updates first, then what the image needs.
# With a list of versions (packages.txt of an earlier build) exactly those are taken.
# shellcheck shell=bash

lock=$KIT/packages.txt
case ${FAMILY:?} in
    debian | ubuntu)
        # mvapich-stack's own stamp: lists as old as this build are new enough for a second run
        if [[ ! -e $KIT/.lists-updated ]]; then
            if [[ -f $lock ]]; then
                sed -n 's/^\([^=:]*\)\(:[a-z0-9]*\)\?=\(.*\)$/Package: \1\nPin: version \3\nPin-Priority: 1001\n/p' \
                    "$lock" >/etc/apt/preferences.d/mvapich-stack-build
            fi
            apt-get -q update ||
                refuse "the lists of packages cannot be obtained" "see that the instance reaches its mirror"
            : >"$KIT/.lists-updated"
        fi
        if apt-get -q -s dist-upgrade | grep -q '^Inst '; then
            DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 \
                -o Dpkg::Options::=--force-confold dist-upgrade
            changed "the distribution's updates"
        fi
        install_packages "${PACKAGES[@]}"
        ;;
    rhel)
        if [[ " ${PACKAGES[*]} " == *" epel-release "* ]]; then
            install_packages epel-release # Lmod is in it
        fi
        if [[ -f $lock ]]; then
            mapfile -t exact < <(sed 's/=/-/' "$lock")
            dnf -q -y install "${exact[@]}"
        elif ! dnf -q check-update >/dev/null; then
            dnf -q -y upgrade
            changed "the distribution's updates"
        fi
        install_packages "${PACKAGES[@]}"
        ;;
    *) refuse "packages of family $FAMILY are not known" ;;
esac
