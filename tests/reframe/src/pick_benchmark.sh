# Sourced by the benchmark checks' job script: `source pick_benchmark.sh latency "$soname"`.
# Sets the array `benchmark` to a program and its arguments, and prints which one it is. Order: the
# OSU Micro-Benchmarks installed with the MPI itself, those of a loaded module, IMB-MPI1 of a loaded
# module where the MPI's soname is the one that IMB was linked against, and last our own program.
measure=$1 soname=$2
case $measure in
    latency)   osu=pt2pt/osu_latency      imb=PingPong ;;
    bandwidth) osu=pt2pt/osu_bw           imb=Uniband ;;
    allreduce) osu=collective/osu_allreduce imb=Allreduce ;;
    *)         echo "pick_benchmark.sh: unknown measure '$measure'" >&2; exit 2 ;;
esac

source find_osu.sh
program=$(find_osu "$osu")

if [ -n "$program" ]; then
    case $measure in
        latency)   benchmark=("$program" -m 4:1048576 -i 1000 -x 100) ;;
        bandwidth) benchmark=("$program" -m 4:1048576 -i 50 -x 5) ;;
        allreduce) benchmark=("$program" -m 4:1048576 -i 200 -x 20) ;;
    esac
    echo "benchmark osu $program"
elif [ "$soname" = libmpi.so.12 ] && command -v IMB-MPI1 >/dev/null; then
    # Iterations of a size, and MiB that all of them may move: Uniband sends 64 messages in each.
    # -time: seconds that one message size may take.
    iterations=500,40
    [ "$measure" = bandwidth ] && iterations=200,4
    benchmark=(IMB-MPI1 "$imb" -npmin "$ranks" -msglog 2:20 -iter "$iterations" -time 10)
    echo "benchmark imb $(command -v IMB-MPI1)"
else
    benchmark=("$PWD/mvstack_pingpong" "$measure" 1048576)
    echo "benchmark own $PWD/mvstack_pingpong"
fi
