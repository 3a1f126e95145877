# What the provisioning steps are made of; sourced by images/provision/run.
#
# Every function looks first and does nothing where all is as it should be; where it changes something
# it says so, and `run` counts. Variables: those of provision.env, and
#   KIT      the folder that was brought along (provision/, files/, image/, release.tar.zst)
#   KERNEL   the kernel that the image starts: the newest there is, not the one that runs now
#   CHANGES  the file that changes are noted in
# shellcheck shell=bash

say() { printf '    %s\n' "$*"; }

changed() {
    printf '    changed: %s\n' "$*"
    printf '%s\n' "$*" >>"${CHANGES:?}"
}

refuse() { # refuse WHAT [WHAT TO DO]: ends the step
    printf 'REFUSED: %s\n' "$1" >&2
    [[ $# -lt 2 ]] || printf '    to go on  %s\n' "$2" >&2
    exit 1
}

# put FILE [MODE]: FILE holds what standard input says, whole, with MODE (default 0644).
put() {
    local file=$1 mode=${2:-0644} new
    new=$(mktemp "${CHANGES%/*}/put-XXXXXX")
    cat >"$new"
    if [[ -f $file && ! -L $file ]] && cmp -s "$new" "$file" &&
        [[ $(stat -c %a "$file") == "$(printf '%o' "0$mode")" ]]; then
        rm -f "$new"
        return
    fi
    mkdir -p "${file%/*}"
    install -m "$mode" "$new" "$file.new"
    mv -fT "$file.new" "$file"
    rm -f "$new"
    changed "$file"
}

# block FILE NAME: FILE begins with a block of that name, which holds what standard input says.
block() {
    local file=$1 name=$2 new begin end mode=0644
    begin="# >>> $name" end="# <<< $name"
    if grep -qsxF "$begin" "$file" && ! grep -qxF "$end" "$file"; then
        refuse "$file has no line '$end', so that where the block ends is unknown" "put it there"
    fi
    new=$(mktemp "${CHANGES%/*}/block-XXXXXX")
    {
        echo "$begin"
        cat
        echo "$end"
        [[ ! -f $file ]] || awk -v begin="$begin" -v end="$end" \
            '$0 == begin { inside = 1 } !inside { print } $0 == end { inside = 0 }' "$file"
    } >"$new"
    [[ ! -f $file ]] || mode=$(stat -c %a "$file")
    put "$file" "$mode" <"$new"
    rm -f "$new"
}

has_package() { # has_package NAME: is it installed, whole?
    case ${FAMILY:?} in
        debian | ubuntu) [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]] ;;
        rhel) rpm -q --quiet "$1" ;;
    esac
}

# install_packages NAME…: those that are not there, without what they merely recommend.
install_packages() {
    local name lacking=()
    for name in "$@"; do
        has_package "$name" || lacking+=("$name")
    done
    [[ ${#lacking[@]} -gt 0 ]] || return 0
    say "installing ${#lacking[@]} packages"
    case ${FAMILY:?} in
        debian | ubuntu)
            DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 \
                -o Dpkg::Options::=--force-confold install --no-install-recommends "${lacking[@]}"
            ;;
        rhel) dnf -q -y --setopt=install_weak_deps=False install "${lacking[@]}" ;;
    esac
    for name in "${lacking[@]}"; do
        has_package "$name" || refuse "$name was asked for and is not installed"
        changed "package $name"
    done
}

# unit NAME enabled|disabled|masked: for the next start; a unit that is not there is left so.
# --root=/ reads and writes files alone, so that it works where no systemd runs, too.
unit() {
    local name=$1 wanted=$2 now
    now=$(systemctl --root=/ is-enabled "$name" 2>/dev/null) || true
    case $now in
        "" | not-found) return 0 ;; # not there
        enabled | enabled-runtime | alias) now=enabled ;;
        masked | masked-runtime) now=masked ;;
        static | indirect | generated) [[ $wanted == masked ]] || return 0 ;;
    esac
    [[ $now != "$wanted" ]] || return 0
    [[ $now != masked ]] || systemctl --root=/ --quiet unmask "$name"
    case $wanted in
        enabled) systemctl --root=/ --quiet enable "$name" ;;
        disabled) systemctl --root=/ --quiet disable "$name" ;;
        masked) systemctl --root=/ --quiet mask "$name" ;;
        *) refuse "unit $name: $wanted is no state" ;;
    esac
    changed "unit $name is $wanted"
}

# fetch ID: prints the path of a file of the downloads table, whose hash was seen to be right.
# A file that the kit brings (downloads/ID) is taken instead, for a build without a network.
fetch() {
    local id=$1 row wanted url sum file
    for row in "${DOWNLOADS[@]}"; do
        [[ $row == "$id "* ]] || continue
        read -r _ _ sum url <<<"$row"
        file=${KIT:?}/downloads/$id
        mkdir -p "${file%/*}"
        if [[ ! -f $file ]]; then
            curl --fail --silent --show-error --location --proto '=https' --retry 3 \
                --connect-timeout 30 --output "$file.part" "$url" >&2 ||
                refuse "$id could not be downloaded from $url" "bring it as downloads/$id"
            mv "$file.part" "$file"
        fi
        wanted=$(sha256sum "$file")
        [[ ${wanted%% *} == "$sum" ]] ||
            refuse "$id from $url has another hash: ${wanted%% *} (expected $sum)" \
                "see whether upstream changed it, and correct environments/policy/images.yaml"
        echo "$file"
        return
    done
    refuse "$id is not in the table of downloads for this image" \
        "add it to environments/policy/images.yaml with version, URL, SHA-256 and source"
}

newest_kernel() { # prints the version of the newest kernel that is installed
    local newest=''
    # before ~ the rest of a version is a longer one: 553.el8_10 is older than 553.75.1.el8_10
    [[ ! -d /lib/modules ]] || newest=$(find /lib/modules -mindepth 1 -maxdepth 1 -type d \
        -printf '%f\n' | sed 's/\.el/~el/' | sort -V | tail -n 1 | sed 's/~el/.el/')
    echo "$newest"
}
