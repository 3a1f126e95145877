# Runs a program on one core: the core of the rank's number on its node. Every MPI gets the same cores
# so, whatever it would choose by itself. Of a core with several hardware threads
# the first that this process may run on is taken.
# Words NAME=VALUE before the program are variables of the MPI: what the launcher did not bring along, as ssh does not, is
# set here, and what it did stands.
# MVSTACK_BOUND=far: ranks take cores from either end in turns, so that two are on different sockets.
while [[ ${1:-} =~ ^[A-Za-z_][A-Za-z0-9_]*= ]]; do
    [[ -v ${1%%=*} ]] || export "$1"
    shift
done
rank=${MPI_LOCALRANKID:-${OMPI_COMM_WORLD_LOCAL_RANK:-${MV2_COMM_WORLD_LOCAL_RANK:-}}}
# a batch script's own shell has SLURM_LOCALID too, so what mpiexec starts there inherits it
rank=${rank:-${FLUX_TASK_LOCAL_ID:-${PALS_LOCAL_RANKID:-${SLURM_LOCALID:-}}}}
cores=()
declare -A taken # a container may have the second threads alone
for range in $(sed -n 's/^Cpus_allowed_list:\s*//p' /proc/self/status | tr , ' '); do
    for ((cpu = ${range%-*}; cpu <= ${range#*-}; cpu++)); do
        siblings=$(cat "/sys/devices/system/cpu/cpu$cpu/topology/thread_siblings_list" 2>/dev/null)
        [[ -v taken[${siblings:=$cpu}] ]] || cores+=("$cpu")
        taken[$siblings]=1
    done
done
((${#cores[@]} < 2)) || export MVSTACK_CORES=${#cores[@]}
if [[ -z $rank ]] || ((${#cores[@]} < 2)); then
    exec "$@" # the launcher has bound it, or says no number
fi
place=$((rank % ${#cores[@]}))
if [[ ${MVSTACK_BOUND:-} == far ]]; then
    ((place % 2)) && place=$((${#cores[@]} - 1 - place / 2)) || place=$((place / 2))
fi
exec taskset -c "${cores[place]}" "$@"
