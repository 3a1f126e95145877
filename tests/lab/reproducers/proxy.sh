#!/bin/bash
# mpiexec on its own host, with a hydra_pmi_proxy that does not start: proxy.sh PREFIX
#
# Prints "hangs" and ends with 1 where mpiexec has not ended after 10 seconds.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp -L "${1:?the prefix of an MPI with hydra}/bin/mpiexec.hydra" "$folder/mpiexec"
printf '#!/bin/sh\necho "a library is missing" >&2\nexit 127\n' >"$folder/hydra_pmi_proxy"
chmod +x "$folder"/*
status=0
timeout 10 "$folder/mpiexec" -n 2 true || status=$?
if ((status == 124)); then
    echo hangs
    exit 1
fi
echo "ends with status $status"
