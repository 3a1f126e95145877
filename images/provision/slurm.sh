# A Slurm for as long as the test in the image runs: of one node, on loopback, or of the machines of NODES.
# Sourced by smoke. The cluster that takes the image brings its own, with its own users: nothing of this one
# may stay.
# shellcheck shell=bash

before() { # before FOLDER NAME: keeps in FOLDER what is installed and which users there are
    case ${FAMILY:?} in
        rhel) rpm -qa --qf '%{NAME}\n' ;;
        *) dpkg-query -W -f '${Package}\n' ;;
    esac | sort -u >"$1/packages.$2"
    cut -d: -f1 /etc/passwd | sort >"$1/passwd.$2"
    cut -d: -f1 /etc/group | sort >"$1/group.$2"
}

# slurm_begin FOLDER [NUMBER]: starts what it needs here; slurm.conf, its files and the list of its processes are
# in FOLDER. This is machine NUMBER of NODES, lines of a host's name and its address; all have the same
# FOLDER/munge.key and as many processors as this one.
slurm_begin() {
    local folder=$1 number=${2:-1} processors process until name address
    processors=$(nproc)
    ((processors > 1)) || processors=2
    before "$folder" before
    # a machine that was started from an image has no lists of packages
    case ${FAMILY:?} in debian | ubuntu) apt-get -q update >&2 || true ;; esac
    [[ ${#TEST_PACKAGES[@]} == 0 ]] || install_packages "${TEST_PACKAGES[@]}" >&2
    chmod 0755 "$folder"
    [[ -f $folder/munge.key ]] || head -c 128 /dev/urandom >"$folder/munge.key"
    chmod 0400 "$folder/munge.key"
    read -r name address <<<"${NODES[0]}"
    cat >"$folder/slurm.conf" <<END
ClusterName=test
SlurmctldHost=$name($address)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SchedulerType=sched/builtin
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
StateSaveLocation=$folder/state
SlurmctldPidFile=$folder/slurmctld.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdPidFile=$folder/slurmd.pid
SlurmdSpoolDir=$folder/spool
SlurmdLogFile=$folder/slurmd.log
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
$(for row in "${NODES[@]}"; do
        read -r name address <<<"$row"
        echo "NodeName=$name NodeHostname=$name NodeAddr=$address CPUs=$processors"
    done)
END
    mkdir -p "$folder/state" "$folder/spool"
    munged --force --foreground --key-file="$folder/munge.key" --socket="$folder/munge.socket" \
        --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" \
        --seed-file="$folder/munged.seed" >"$folder/munged.out" 2>&1 &
    echo $! >"$folder/processes"
    if ((number == 1)); then
        slurmctld -D >"$folder/slurmctld.out" 2>&1 &
        echo $! >>"$folder/processes"
    fi
    read -r name address <<<"${NODES[number - 1]}"
    slurmd -D -N "$name" >"$folder/slurmd.out" 2>&1 &
    echo $! >>"$folder/processes"
    if ((number > 1)); then
        sleep 2
        while read -r process; do kill -0 "$process" 2>/dev/null || number=0; done <"$folder/processes"
        ((number == 0)) || return 0
        tail "$folder"/{munged,slurmd}.{out,log} >&2 2>/dev/null || true
        return 1
    fi
    until=$((SECONDS + ${MVSTACK_SMOKE_LIMIT:-300}))
    while ((SECONDS < until)); do
        [[ $(timeout 10 sinfo --noheader --format='%D %T' 2>/dev/null) != "${#NODES[@]} idle" ]] || return 0
        while read -r process; do kill -0 "$process" 2>/dev/null || until=0; done <"$folder/processes"
        sleep 1
    done
    cat "$folder"/{munged,slurmctld,slurmd}.{out,log} >&2 2>/dev/null || true
    timeout 10 sinfo --Node --long >&2 || true
    return 1
}

slurm_end() { # slurm_end FOLDER: ends it, and takes away what slurm_begin brought
    local folder=$1 process names=()
    [[ -f $folder/packages.before ]] || return 0
    if [[ -f $folder/processes ]]; then
        if [[ -f $folder/slurmctld.out ]]; then
            timeout 30 scancel --full --user=root 2>/dev/null || true
            for ((waited = 0; waited < 30; waited++)); do
                [[ -n $(timeout 10 squeue --noheader 2>/dev/null) ]] || break
                sleep 1
            done
        fi
        while read -r process; do
            # by now the number may be another's
            [[ $(cat "/proc/$process/comm" 2>/dev/null) =~ ^(munged|slurm) ]] || continue
            kill "$process" 2>/dev/null || true
            while kill -0 "$process" 2>/dev/null; do sleep 0.1; done
        done <"$folder/processes"
    fi
    before "$folder" after
    mapfile -t names < <(comm -13 "$folder/packages.before" "$folder/packages.after")
    if [[ ${#names[@]} -gt 0 ]]; then
        case ${FAMILY:?} in
            rhel) dnf -q -y remove "${names[@]}" >&2 ;;
            *) DEBIAN_FRONTEND=noninteractive apt-get -q -y purge "${names[@]}" >&2 ;;
        esac
    fi
    # CycleCloud and ParallelCluster make users of these names with numbers of their own
    while read -r name; do
        ! id "$name" >/dev/null 2>&1 || userdel "$name"
    done < <(comm -13 "$folder/passwd.before" "$folder/passwd.after")
    while read -r name; do
        ! getent group "$name" >/dev/null || groupdel "$name"
    done < <(comm -13 "$folder/group.before" "$folder/group.after")
    if [[ ${#names[@]} -gt 0 ]]; then
        rm -rf /etc/munge /var/{lib,log,spool,cache}/{munge,slurm,slurm-llnl,slurmctld,slurmd} /etc/slurm
    fi
}
