# `module` in every bash: login shells, scripts, and commands that ssh starts on this machine.
# shellcheck shell=bash

put /etc/profile.d/zz-mvapich-stack.sh <<EOF
# Written by mvapich-stack: shows the release's modules to every shell, and at login what the first
# start saw of the hardware.
if [ -n "\${BASH_VERSION:-}" ] && [ -z "\${MVAPICH_STACK_TREE:-}" -o -z "\$(type -t module)" ]; then
    export MVAPICH_STACK_TREE=$TREE
    . "\$MVAPICH_STACK_TREE/init/bash"
fi
if [ -n "\${BASH_VERSION:-}" ] && shopt -q login_shell; then
    case \$- in
        *i*)
            cat /run/mvapich-stack/health 2>/dev/null ||
                echo "unknown: nobody has looked at the hardware since this machine started"
            ;;
    esac
fi
EOF

# A script begins without a login shell's files; bash then reads what BASH_ENV names.
if ! grep -qs '^BASH_ENV=/etc/profile.d/zz-mvapich-stack.sh$' /etc/environment; then
    echo BASH_ENV=/etc/profile.d/zz-mvapich-stack.sh >>/etc/environment
    changed /etc/environment
fi

# What `ssh HOST command` starts reads this file alone on Debian; RHEL's reads profile.d.
if [[ ${FAMILY:?} != rhel ]]; then
    block /etc/bash.bashrc mvapich-stack <<'EOF'
case $- in *i*) ;; *) . /etc/profile.d/zz-mvapich-stack.sh ;; esac
EOF
fi
