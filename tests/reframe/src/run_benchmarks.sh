# Sourced by the job scripts of OsuBenchmarks and ImbBenchmarks.
# `run_benchmark NAME SECONDS "LAUNCH LINE" PROGRAM ARGUMENTS…` runs one and says what became of it,
# for runs() of groups.py. After one that hangs no more are run: each would take all of its time.
hung=
run_benchmark() {
    local name=$1 seconds=$2 start=$3 began status=0
    shift 3
    if [ -z "$1" ]; then
        echo "without $name"
    elif [ -z "$hung" ]; then
        echo "begin $name $start $*"
        began=$(date +%s%N)
        # In the foreground: whoever ends the job, by its process group, ends this, too.
        # shellcheck disable=SC2086  # a line of words
        timeout --foreground -k 10 "$seconds" \
            $start env LD_DEBUG=libs LD_DEBUG_OUTPUT="loader.$name" "$@" || status=$?
        printf '\nend %s %s %s\n' "$name" "$status" $((($(date +%s%N) - began) / 1000000))
        case $status in 124 | 137) hung=$name ;; esac
    fi
}
