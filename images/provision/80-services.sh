# Units on and off, as environments/policy/images.yaml says.
# shellcheck shell=bash

for row in "${UNITS[@]}"; do
    read -r name state <<<"$row"
    unit "$name" "$state"
done
