# The release: the tree as its builder made it, at the path that it was built for.
# shellcheck shell=bash

archive=$KIT/release.tar.zst
read -r wanted _ <"$KIT/release.sha256"
mark=/etc/mvapich-stack/release.sha256
if [[ ! -f $mark || $(<"$mark") != "$wanted" || ! -d ${TREE:?}/modules ]]; then
    found=$(sha256sum "$archive")
    [[ ${found%% *} == "$wanted" ]] ||
        refuse "the release arrived damaged: ${found%% *} (expected $wanted)" "build the image again"
    mkdir -p "${TREE%/*}"
    rm -rf "$TREE.incoming"
    mkdir "$TREE.incoming"
    tar --zstd --numeric-owner -C "$TREE.incoming" -xf "$archive"
    rm -rf "$TREE"
    mv "$TREE.incoming" "$TREE" # whole or not at all
    changed "release $RELEASE in $TREE"
    echo "$wanted" | put "$mark"
fi
put /etc/mvapich-stack/image.json <"$KIT/image.json"
# what must run once the image was started: images/tests
[[ -z $KERNEL ]] || put /etc/mvapich-stack/kernel <<<"$KERNEL"
