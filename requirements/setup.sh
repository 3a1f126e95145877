# Makes the checkout's .venv; sourced by ./mvstack and tests/run, which set $top.
#
# .venv/.ready is written last and says what .venv was made from, so that one which was interrupted,
# or whose pins changed, is made again. Everything is installed by hash. Our own package is not
# installed but reached by a relative path, so a checkout can be moved.
# shellcheck shell=bash

venv=${top:?}/.venv
oldest=11 newest=14 # Python 3.x that requirements/*.txt hold for
parts='bz2, ctypes, lzma, ssl, zlib' # of Python that are built only where their libraries are
readonly venv oldest newest parts

# A site's Python modules must not shadow ours, neither while .venv is made nor after it.
unset PYTHONPATH PYTHONHOME

say() { printf 'mvstack: %s\n' "$*" >&2; }

# fail CODE HEADLINE [LINE…]: one error as src/mvstack/support/errors.py prints them, then exit.
fail() {
    printf '%s\n' "$2" >&2
    [[ $# -lt 3 ]] || printf '    %s\n' "${@:3}" >&2
    exit "$1"
}

# What .venv must have been made from: the pins, and the interpreter behind it.
wanted() {
    local pins
    pins=$(sha256sum <"$top/requirements/core.txt")
    echo "${pins%% *} $(readlink -f "$venv/bin/python")"
}

is_ready() { [[ -x $venv/bin/python && $(cat "$venv/.ready" 2>/dev/null) == "$(wanted) $top" ]]; }

# Sets of packages that some commands add to core.txt, each with the file that pins it.
stamp() { cat "$top/requirements/build.txt" "$top/requirements/$1.txt" | sha256sum; }
has_set() { [[ $(cat "$venv/.ready-$1" 2>/dev/null) == "$(stamp "$1")" ]]; }
runtime_ready() { has_set runtime; }
images_ready() { has_set images; }
tune_ready() { has_set tune; }
tests_ready() { has_set test; }

# may_install WORD…: may apt be run? Yes for root who said --yes, MVSTACK_YES=1, or y when asked.
may_install() {
    local word answer
    [[ $EUID == 0 ]] || return 1
    [[ ${MVSTACK_YES:-} != 1 ]] || return 0
    for word in "$@"; do [[ $word != --yes ]] || return 0; done
    [[ -t 0 && -t 2 ]] || return 1
    read -r -p "mvstack: install them now? [y/N] " answer
    [[ $answer == [yY]* ]]
}

# need_apt WHY PACKAGES WORD…: installs the packages, or says the command that does and exits 7.
need_apt() {
    local why=$1 sudo='' packages log
    read -r -a packages <<<"$2"
    [[ $EUID == 0 ]] || sudo='sudo '
    say "$why needs from apt: ${packages[*]}"
    may_install "${@:3}" ||
        fail 7 "missing on this machine: ${packages[*]}" "because   $why needs them" \
            "to go on  ${sudo}apt-get update && ${sudo}apt-get install -y ${packages[*]}" \
            "          or, as root, put MVSTACK_YES=1 before the same command"
    log=$(mktemp --suffix=.log -t mvstack-apt-XXXXXX)
    local -a apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
    if ! watched "apt-get update" "$log" "${apt[@]}" update ||
        ! watched "apt-get install ${#packages[@]} packages" "$log" \
            "${apt[@]}" install -y --no-install-recommends "${packages[@]}"; then
        show_end "$log"
        [[ " ${packages[*]} " != *" python3.$oldest "* ]] || no_python
        fail 7 "apt-get could not install ${packages[*]}" "log       $log" \
            "to go on  mend what apt-get says above, then give the same command again"
    fi
    rm -f "$log"
}

# watched LABEL LOG COMMAND…: runs it with its output in LOG and one line of progress; its status.
# The command gets a process group of its own, so that an interrupt ends it and its children too.
watched() {
    local label=$1 log=$2 begin=$SECONDS status=0 pid said=0 count spent
    shift 2
    [[ -t 2 ]] || say "$label …"
    : >>"$log" # it is read below, perhaps before the command has opened it
    # if we are killed, the command is too: a pip left behind would write into the next one's .venv
    ! command -v setpriv >/dev/null || set -- setpriv --pdeathsig KILL "$@"
    set -m
    "$@" >>"$log" 2>&1 </dev/null &
    pid=$!
    set +m
    trap 'interrupted "$pid"' INT TERM HUP
    while kill -0 "$pid" 2>/dev/null; do
        spent=$((SECONDS - begin))
        count=$(grep -cE '^(Collecting|Processing|Unpacking|Setting up) ' "$log" || true)
        if [[ -t 2 ]]; then
            printf '\r\033[Kmvstack: %s: step %s, %d s (log %s)' "$label" "$count" "$spent" "$log" >&2
        elif ((spent >= said + 15)); then
            said=$spent
            say "$label: step $count, $spent s so far (log $log)"
        fi
        sleep 0.3
    done
    wait "$pid" || status=$?
    trap - INT TERM HUP
    [[ ! -t 2 ]] || printf '\r\033[K' >&2
    ((status)) || say "$label: done in $((SECONDS - begin)) s"
    return "$status"
}

interrupted() { # interrupted PID: ends its group, so that nothing goes on behind our back
    kill -TERM -- "-$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
    [[ ! -t 2 ]] || echo >&2
    say "interrupted; the same command goes on"
    exit 130
}

show_end() { tail -n 12 "$1" | sed 's/^/    | /' >&2; }

# Says why MVSTACK_PYTHON cannot be taken, in one line.
why_not() {
    local path version
    path=$(command -v "$1") || { echo "there is no such program" && return; }
    version=$("$path" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) ||
        { echo "it does not run as Python" && return; }
    "$path" -c "import sys; sys.exit(not (3, $oldest) <= sys.version_info[:2] <= (3, $newest))" ||
        { echo "it is Python $version; 3.$oldest to 3.$newest are supported" && return; }
    "$path" -c "import $parts" 2>/dev/null ||
        { echo "it was built without one of $parts: build it anew with their libraries' headers" && return; }
    echo "it is Python $version without its venv module (on Debian: python$version-venv)"
}

# Sets $python to an interpreter that can make .venv, or the array $lacking to what apt must bring.
find_python() {
    local name version without_venv='' without_pip='' names=(python3 python3.{11..14})
    [[ -z ${MVSTACK_PYTHON:-} ]] || names=("$MVSTACK_PYTHON")
    python='' lacking=() seen=()
    for name in "${names[@]}"; do
        command -v "$name" >/dev/null || continue
        version=$("$name" -c 'import sys; print("%d %d" % sys.version_info[:2])' 2>/dev/null) ||
            continue # a shim of pyenv or the like with nothing behind it
        seen+=("$(command -v "$name") (${version/ /.})")
        [[ ${version% *} == 3 ]] || continue
        ((${version#* } >= oldest && ${version#* } <= newest)) || continue
        if ! "$name" -c "import $parts" 2>/dev/null; then
            seen[-1]+=" without one of $parts"
            continue
        fi
        if "$name" -c 'import ensurepip, venv' 2>/dev/null; then
            python=$(command -v "$name")
            return
        fi
        without_venv=${without_venv:-python3.${version#* }-venv}
        ! "$name" -c 'import venv' 2>/dev/null || without_pip=${without_pip:-$(command -v "$name")}
    done
    # who cannot install python3-venv fetches pip
    [[ $EUID == 0 || -z $without_pip ]] || { python=$without_pip && return; }
    if [[ -n $without_venv ]]; then
        lacking=("$without_venv")
    elif [[ ${#seen[@]} == 0 ]]; then
        lacking=(python3 python3-venv)
    else # those that are here are too old or too new
        lacking=("python3.$oldest" "python3.$oldest-venv")
    fi
    # Debian's pip takes its certificates from there and nowhere else.
    [[ -e /etc/ssl/certs/ca-certificates.crt ]] || lacking+=(ca-certificates)
}

need_python() {
    find_python
    if [[ -z $python && -z ${MVSTACK_PYTHON:-} ]] && command -v apt-get >/dev/null &&
        apt_has "${lacking[@]}"; then
        need_apt "mvstack's own Python environment" "${lacking[*]}" "$@"
        hash -r
        find_python
    fi
    [[ -n $python || -z ${MVSTACK_PYTHON:-} ]] ||
        fail 7 "MVSTACK_PYTHON=$MVSTACK_PYTHON: this Python cannot be used" \
            "because   $(why_not "$MVSTACK_PYTHON")" \
            "to go on  name another, or unset MVSTACK_PYTHON to take the first that fits from PATH"
    [[ -n $python ]] || no_python
}

no_python() {
    fail 7 "missing on this machine: Python 3.$oldest to 3.$newest with its venv module" \
        "found     ${seen[*]:-none}" \
        "to go on  install one (RHEL: dnf install python3.12; SUSE: zypper install python312; Debian 11" \
        "          and Ubuntu 20.04 have none: take a newer release, pyenv install 3.12, or" \
        "          python.org's source), or load your site's module; on PATH, or by its name:" \
        "          MVSTACK_PYTHON=/path/to/python3 $top/mvstack …"
}

# Can apt bring these? Before its first update it does not know.
apt_has() { ! apt-cache show bash >/dev/null 2>&1 || apt-cache show "$@" >/dev/null 2>&1; }

# Can everybody run this file? Its folders too must be open to others.
open_to_all() {
    local path
    path=$(readlink -f "$1")
    [[ $(stat -c %A "$path") == *x ]] || return 1
    while [[ $path != / ]]; do
        path=$(dirname "$path")
        [[ $(stat -c %A "$path") == *[xt] ]] || return 1
    done
}

# Holds the lock on .venv until unlock; says so when another set-up has it.
lock() {
    if [[ -r $venv/.ready && ! -w $venv && ! -x $venv/bin/python ]]; then
        fail 7 "$venv: was made with a Python that $(id -un) cannot run" \
            "found     $(readlink "$venv/bin/python")" \
            "to go on  have its owner make it again with a Python that everybody can run:" \
            "          rm -rf $venv && MVSTACK_PYTHON=/usr/bin/python3 $top/mvstack --version"
    fi
    if [[ -d $venv && ! -w $venv && $(find "$venv" ! -readable ! -type l -print -quit 2>/dev/null) ]]; then
        fail 7 "$venv: cannot be read by $(id -un)" \
            "because   it was made under a umask that keeps others out" \
            "to go on  have its owner open it: chmod -R go+rX $venv"
    fi
    if ! { mkdir -p "$venv" && exec 9>"$venv/.lock"; } 2>/dev/null; then
        fail 7 "$venv: cannot be written by $(id -un)" \
            "because   this checkout is not set up yet, and that writes its .venv" \
            "to go on  have its owner run ./mvstack check once, or clone it to a place of yours"
    fi
    flock -n 9 || {
        say "another set-up of $top is under way; waiting for it"
        flock -w 1800 9 || fail 8 "$venv: still locked after 30 minutes" \
            "to go on  see who holds it: fuser $venv/.lock"
    }
}
unlock() { exec 9>&-; }

# pip_install LABEL FILE: what FILE pins, by hash. Site-wide pip settings that would put it
# elsewhere are taken away; those that say where packages come from are honoured.
pip_install() {
    local log=$venv/setup-${2%.txt}.log
    watched "$1" "$log" env -u PIP_USER -u PIP_TARGET -u PIP_PREFIX -u PIP_REQUIRE_VIRTUALENV \
        "$venv/bin/python" -m pip install --no-input \
        --disable-pip-version-check --progress-bar off --no-warn-script-location \
        --no-build-isolation --require-hashes -r "$top/requirements/$2" && return
    show_end "$log"
    ! grep -qE "Failed (building wheel|to build)" "$log" ||
        fail 7 "requirements/$2: a package without a wheel for $(uname -m) could not be compiled" \
            "log       $log" \
            "to go on  install gcc and Python's headers (apt-get install gcc libc6-dev python3-dev," \
            "          dnf install gcc python3-devel), and give the same command again"
    fail 5 "requirements/$2: could not be installed" "log       $log" \
        "because   a package could not be downloaded, or is not what its hash says; see above" \
        "to go on  give the same command again once pip can reach its index (PIP_INDEX_URL," \
        "          PIP_FIND_LINKS and PIP_CERT are honoured: docs/install.md)"
}

# A checkout that was moved or copied: the scripts in .venv/bin name the old place. True if mended.
mend_moved() {
    local ready
    [[ -x $venv/bin/python ]] || return 1
    ready=$(cat "$venv/.ready" 2>/dev/null) && [[ $ready == "$(wanted) /"* ]] || return 1
    "$venv/bin/python" -I - "${ready#"$(wanted) "}/.venv" "$venv" <<'PY' || return 1
import pathlib, sys
old, new = sys.argv[1:]
if " " in new or len(new) > 100:  # no such path fits behind #!: pip writes another first line
    sys.exit(1)
for script in pathlib.Path(new, "bin").iterdir():
    text = b"" if script.is_symlink() or not script.is_file() else script.read_bytes()
    if old.encode() in text and b"\0" not in text:
        script.write_bytes(text.replace(old.encode(), new.encode()))
PY
    say "this checkout was moved; its .venv now names the new place"
}

mark() { # mark NAME TEXT: a stamp that is there whole or not at all
    printf '%s\n' "$2" >"$venv/$1.new"
    mv "$venv/$1.new" "$venv/$1"
}

# set_up WORD…: makes .venv with what every command needs, unless somebody else has by now.
set_up() {
    local begin=$SECONDS python lacking seen site
    lock
    if is_ready || { mend_moved && mark .ready "$(wanted) $top"; }; then
        unlock
        return
    fi
    # of the same interpreter, but other pins: only what changed is installed
    if [[ ! -x $venv/bin/python || $(cat "$venv/.ready" 2>/dev/null) != *" $top" ]]; then
        need_python "$@"
        say "making $venv with $python (only this once)"
        [[ $EUID != 0 ]] || open_to_all "$python" ||
            say "warning: only root can run $python, so only root can use this checkout" \
                "(MVSTACK_PYTHON names another)"
        find "$venv" -mindepth 1 -maxdepth 1 ! -name .lock -exec rm -rf {} +
        make_venv "$python" >"$venv/setup.log" 2>&1 || {
            show_end "$venv/setup.log"
            fail 7 "$python: could not make $venv" "log       $venv/setup.log" \
                "to go on  mend what it says above, or name another: MVSTACK_PYTHON=/path/to/python3"
        }
    fi
    # elsewhere psutil and others have no wheels, and are compiled
    [[ $(uname -m) =~ ^(x86_64|aarch64)$ ]] || pip_install "installing what builds packages" build.txt
    pip_install "installing $(count_of core) packages" core.txt
    site=$("$venv/bin/python" -I -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    echo ../../../../src >"$site/mvapich_stack.pth"
    "$venv/bin/python" -P -c 'import mvstack' ||
        fail 7 "$venv: was made, but does not find src/mvstack" "log       $venv/setup.log"
    mark .ready "$(wanted) $top"
    say "set up in $((SECONDS - begin)) s"
    unlock
}

# make_venv PYTHON: with the pip that its ensurepip has, or the pinned one. ensurepip itself would compile
# all of that, and with Python 3.11 setuptools, too: six seconds of the first use. A distribution's
# Python (WHEEL_PKG_DIR) may keep that pip elsewhere, in a package that is not installed.
make_venv() {
    local wheel
    wheel=$("$1" -I -c 'import ensurepip, pathlib, sysconfig
here = pathlib.Path(ensurepip.__file__).parent / "_bundled"
places = pathlib.Path(sysconfig.get_config_var("WHEEL_PKG_DIR") or here), here
print(next(one for place in places for one in place.glob("pip-*.whl")))' 2>/dev/null) || wheel=''
    "$1" -m venv --without-pip "$venv" &&
        "$venv/bin/python" -I "$top/requirements/fetch_pip.py" "$top/requirements/pip.txt" ${wheel:+"$wheel"}
}

count_of() { grep -c '^[a-z].*==[^;]*$' "$top/requirements/$1.txt"; }

# add_set NAME WHAT: adds the packages of requirements/NAME.txt to a .venv that is ready.
add_set() {
    lock
    if ! has_set "$1"; then
        say "$2 needs more Python packages; installing them (only this once)"
        [[ $1 != runtime ]] || pip_install "installing what builds packages" build.txt
        pip_install "installing $(count_of "$1") packages" "$1.txt"
        [[ $1 != test ]] || has_node || pip_install "installing Node, which runs pipelines" node.txt
        mark ".ready-$1" "$(stamp "$1")"
    fi
    unlock
}
set_up_runtime() { add_set runtime "${1:-what you asked for}"; }
set_up_images() { add_set images "an image"; }
set_up_tune() { add_set tune "mvstack tune"; }
set_up_tests() { add_set test "passing the tests"; }

# Is there a Node that gitlab-ci-local runs on? It says 20.19 or newer.
has_node() {
    command -v npm >/dev/null && node -e '
        const [major, minor] = process.versions.node.split(".").map(Number)
        process.exit(major > 20 || (major == 20 && minor >= 19) ? 0 : 1)' 2>/dev/null
}

# needs_runtime WORD…: does this command run EasyBuild or ReFrame, have EasyBuild read easyconfigs, or
# draw plots? They are half a gigabyte, which `explain` need not wait for, but of `local`, whose MPI is
# the one whose source can be had. Sets $command to its name.
needs_runtime() {
    local here='' more=''
    command=''
    while (($#)); do
        case $1 in
            --help | -h) return 1 ;;
            --site) shift ;; # its folder is no command
            -*) ;;
            *)
                [[ $1 != local && $1 != local/* ]] || here=yes
                if [[ $command ]]; then more+=" $1"; else command=$1; fi
                ;;
        esac
        shift || return 1
    done
    case $command in
        '' | abi | discover | list | new) return 1 ;;
        diff | explain | lock | render) [[ $here ]] || return 1 ;;
        check) [[ ! $more ]] || return 1 ;; # all of it: every recipe's sources too
        sources) [[ $more != ' list' ]] || return 1 ;;
    esac
}
