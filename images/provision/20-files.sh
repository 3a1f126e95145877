# The files that policy and repository say, whole, each compared first. They hold from the next start.
# shellcheck shell=bash

for top in "$KIT/files" "$KIT/image/files"; do
    while IFS= read -r -d '' file; do
        mode=0644
        [[ ! -x $file ]] || mode=0755
        put "${file#"$top"}" "$mode" <"$file"
    done < <(find "$top" -type f -print0 | sort -z)
done
