# Azure: the agent, IP over InfiniBand, and room for CycleCloud's Slurm.
# Partition keys need no setting: the host fills the adapter's table, the tenant's full-member key first and
# 0x7fff after it, and UCX and IPoIB take the first full one. node-health sees that it is there.
# shellcheck shell=bash
# shellcheck source=images/provision/kernel-modules.sh
source "${KIT:?}/provision/kernel-modules.sh"

before=$(changes_so_far)
case ${FAMILY:?} in
    rhel) install_packages WALinuxAgent ;;
    debian) install_packages waagent ;;
    ubuntu) install_packages walinuxagent ;;
esac

# settings NAME VALUE …: /etc/waagent.conf has each once, whoever wrote it before
settings() {
    local file=/etc/waagent.conf
    [[ -f $file ]] || refuse "$file is not there, though the agent is installed"
    awk -v pairs="$*" '
        BEGIN { n = split(pairs, word, " "); for (i = 1; i < n; i += 2) want[word[i]] = word[i + 1] }
        {
            name = $0; sub(/^[ \t]*#?[ \t]*/, "", name)
            if (match(name, /^[A-Za-z.]+[ \t]*=/)) {
                key = substr(name, 1, RLENGTH - 1); sub(/[ \t]+$/, "", key)
                if (key in want) {
                    if (!(key in done)) print key "=" want[key]
                    done[key] = 1
                    next
                }
            }
            print
        }
        END { for (i = 1; i < n; i += 2) if (!(word[i] in done)) print word[i] "=" want[word[i]] }
    ' "$file" >"${CHANGES%/*}/waagent.conf"
    put "$file" "$(stat -c %a "$file")" <"${CHANGES%/*}/waagent.conf"
}
# EnableRDMA: the agent gives the InfiniBand interface the address that Azure keeps for it.
# EnableSwap: ranks that swap are ranks that wait. The periods: an agent that looks every 6 seconds is noise.
settings OS.EnableRDMA y ResourceDisk.EnableSwap n \
    Extensions.GoalStatePeriod 300 Extensions.InitialGoalStatePeriod 6 \
    OS.EnableFirewallPeriod 300 OS.RemovePersistentNetRulesPeriod 300 \
    OS.RootDeviceScsiTimeoutPeriod 300 OS.MonitorDhcpClientRestartPeriod 60 \
    Provisioning.MonitorHostNamePeriod 60
case $FAMILY in
    rhel) unit waagent.service enabled ;;
    *) unit walinuxagent.service enabled ;;
esac

# Who else would configure ib0: NetworkManager asks for an address by DHCP, which nobody answers.
if [[ $FAMILY == rhel ]]; then
    put /etc/NetworkManager/conf.d/90-mvapich-stack-ib.conf <<'END'
[keyfile]
unmanaged-devices=interface-name:ib*
END
    # A size with NVMe disks may build what a size with SCSI disks starts, and the other way round.
    put /etc/dracut.conf.d/90-mvapich-stack-azure.conf <<'END'
add_drivers+=" hv_vmbus hv_netvsc hv_storvsc nvme "
END
fi

# Canonical keeps drivers that few need in a package of their own.
if [[ $FAMILY == ubuntu && ${NIC_STACK:?} == inbox ]]; then
    for name in mlx5_ib ib_ipoib ib_umad rdma_ucm; do
        if ! modinfo -k "${KERNEL:?}" "$name" >/dev/null 2>&1; then
            install_packages "linux-modules-extra-$KERNEL"
            break
        fi
    done
fi
for name in mlx5_ib ib_ipoib ib_umad rdma_ucm hv_netvsc; do
    need_module "$name"
done

# CycleCloud's Slurm makes its users with these numbers on every node, and fails where they are taken.
for row in slurm:11100 munge:11101 slurmrestd:11102; do
    name=${row%:*} number=${row#*:}
    found=$(getent passwd "$number" | cut -d: -f1) || true
    [[ -z $found || $found == "$name" ]] ||
        refuse "user number $number is $found's, and CycleCloud's Slurm needs it for $name"
    found=$(id -u "$name" 2>/dev/null) || true
    [[ -z $found || $found == "$number" ]] ||
        refuse "user $name has number $found, and CycleCloud's Slurm gives it $number" \
            "leave out the package that made it: CycleCloud installs its own Slurm and MUNGE"
done

[[ $(changes_so_far) == "$before" ]] || rebuild_initramfs
