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
        # what EPEL's and DOCA's packages need is in a repository that is off by default
        install_packages dnf-plugins-core
        if [[ ${OS:?} == *8 ]]; then extra=powertools; else extra=crb; fi
        if [[ $(dnf -q repolist --enabled) != *$'\n'"$extra "* ]]; then
            dnf -q config-manager --set-enabled "$extra"
            changed "repository $extra is enabled"
        fi
        if [[ " ${PACKAGES[*]} " == *" epel-release "* ]]; then
            install_packages epel-release # Lmod is in it
        fi
        minor() { sed -n 's/^VERSION_ID="\?\([^"]*\)"\?$/\1/p' /etc/os-release; }
        began=$(minor)
        if [[ -f $lock ]]; then
            # name.arch=[epoch:]version-release, which dnf calls name-[epoch:]version-release.arch
            mapfile -t exact < <(sed -E 's/^(.+)\.([^.=]+)=(.+)$/\1-\3.\2/' "$lock")
            dnf -q -y install "${exact[@]}"
        else
            status=0
            dnf -q check-update >/dev/null || status=$?
            case $status in
                0) ;;
                100)
                    dnf -q -y upgrade
                    changed "the distribution's updates"
                    ;;
                *) refuse "the lists of packages cannot be obtained (dnf check-update: $status)" ;;
            esac
        fi
        case ${NIC_STACK:?}-${GPU_STACK:?} in
            doca-* | efa-* | *-nvidia)
                [[ $(minor) == "$began" ]] ||
                    refuse "updates made $began into $(minor), which the drivers of this image were not released for" \
                        "name a base of $(minor), and drivers that know it in environments/policy/images.yaml"
                ;;
        esac
        install_packages "${PACKAGES[@]}"
        ;;
    *) refuse "packages of family $FAMILY are not known" ;;
esac
