# AWS: processor states, and room for what ParallelCluster makes.
# shellcheck shell=bash
# shellcheck source=images/provision/kernel-modules.sh
source "${KIT:?}/provision/kernel-modules.sh"

# Deep sleep of a core costs microseconds at every message that wakes it.
states=(intel_idle.max_cstate=1 processor.max_cstate=1)
case $(has_kernel && echo "${FAMILY:?}") in
    rhel)
        install_packages grubby
        lacking=$(grubby --info=ALL | awk -v a="${states[0]}" -v b="${states[1]}" \
            '/^args=/ && !(index($0, a) && index($0, b)) { lacking = "yes" } END { print lacking }')
        if [[ -n $lacking ]]; then
            grubby --update-kernel=ALL --args="${states[*]}"
            changed "kernel command line: ${states[*]}"
        fi
        ;;
    debian | ubuntu)
        count=$(changes_so_far)
        # after 50-cloudimg-settings.cfg, which sets the variable anew
        put /etc/default/grub.d/90-mvapich-stack.cfg <<END
GRUB_CMDLINE_LINUX_DEFAULT="\$GRUB_CMDLINE_LINUX_DEFAULT ${states[*]}"
END
        if [[ $(changes_so_far) != "$count" ]]; then
            update-grub >&2
            changed "kernel command line: ${states[*]}"
        fi
        ;;
esac

need_module ena
need_module nvme

# ParallelCluster makes these users and groups when it makes its AMI or a cluster from ours.
for row in pcluster-admin:400 slurm:401 munge:402; do
    name=${row%:*} number=${row#*:}
    found=$(getent passwd "$number" | cut -d: -f1) || true
    [[ -z $found || $found == "$name" ]] ||
        refuse "user number $number is $found's, and ParallelCluster needs it for $name"
    found=$(id -u "$name" 2>/dev/null) || true
    [[ -z $found || $found == "$number" ]] ||
        refuse "user $name has number $found, and ParallelCluster gives it $number" \
            "leave out the package that made it: ParallelCluster installs its own Slurm and MUNGE"
done
case ${TREE:?}/ in
    /opt/slurm/* | /opt/parallelcluster/* | /opt/intel/* | /opt/amazon/* | /home/*)
        refuse "the release stands in $TREE, which ParallelCluster or EFA keeps for itself" \
            "give the system another install.root"
        ;;
esac
