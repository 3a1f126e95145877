#!/bin/sh
# still_running.sh OUTPUT PROGRAM: names the ranks of OUTPUT that run on this host five seconds later, and ends
# them, so that they do not burn its processors until somebody notices.
sleep 5
sed -n "s/^rank \([0-9]*\) process \([0-9]*\) on $(uname -n)\$/\1 \2/p" "$1" | while read -r rank process; do
    if [ "$(tr '\0' '\n' <"/proc/$process/cmdline" 2>/dev/null | head -n 1)" = "$2" ]; then
        echo "rank $rank still runs: process $process on $(uname -n)"
        kill -9 "$process"
    fi
done
