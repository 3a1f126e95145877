# Sourced by job scripts: `find_osu pt2pt/osu_latency` prints the path of one of the OSU
# Micro-Benchmarks, or nothing: of those installed with the MPI itself, else of a loaded module.
find_osu() {
    local folder candidate prefix
    prefix=$(dirname "$(dirname "$(command -v mpicc)")")
    for folder in "$prefix"/libexec/osu-micro-benchmarks \
        "${EBROOTOSUMINMICROMINBENCHMARKS:-}"/libexec/osu-micro-benchmarks
    do
        # Some versions sort their point-to-point programs one folder deeper.
        for candidate in "$folder/mpi/$1" "$folder/mpi/${1%/*}/standard/${1##*/}"; do
            [ -x "$candidate" ] && echo "$candidate" && return
        done
    done
    command -v "${1##*/}" || true
}
