#!/usr/bin/env bash
# Runs every example as a new user would, for a moment, and then every failure that one can bring about without hardware:
# the exit status must be right, a failure says so in one line, nothing panics and nothing hangs.
set -euo pipefail
CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

cargo build --release --examples --locked
PATH=${CARGO_TARGET_DIR:-target}/release/examples:$PATH
[[ $PATH == /* ]] || PATH=$PWD/$PATH
for variable in $(compgen -v RDMA_ || true); do
    unset "$variable"
done
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT

# Longer than anything here takes on a busy machine.
deadline=60

# expect STATUS WORDS COMMAND...: it ends in time with this status, and says the words somewhere.
expect() {
    local status=0 wanted=$1 words=$2
    shift 2
    echo "\$ $*"
    timeout -k 5 "$deadline" "$@" >"$scratch/out" 2>"$scratch/error" </dev/null || status=$?
    if [ "$status" -ne "$wanted" ] || ! grep -qF -- "$words" "$scratch/out" "$scratch/error" ||
        grep -q panicked "$scratch/error"; then
        echo "status $status instead of $wanted, or not \"$words\":"
        cat "$scratch/out" "$scratch/error"
        return 1
    fi
    # A usage error of clap is longer: it names the way to --help.
    if [ "$wanted" -eq 1 ] && [ "$(wc -l <"$scratch/error")" -ne 1 ]; then
        echo "not one line of error:"
        cat "$scratch/error"
        return 1
    fi
}

soft=(env RDMA_PROVIDER=soft "RDMA_SOFT_FABRIC=examples-$$" "RDMA_SOFT_DIRECTORY=$scratch")

expect 0 'received "hello"' send_recv
expect 0 'receiver'"'"'s mapping is at' zero_copy
expect 0 '4 hosts, 12 messages' mesh
expect 0 '2 hosts, 2 messages' mesh 2 --size 16773120
expect 1 'at most 16773120 bytes' mesh --size 16773121
expect 2 'not in 2..=16' mesh 1

expect 0 'PORT_ACTIVE (4)' devices --provider soft
expect 0 'rdma_en5' "${soft[@]}" RDMA_SOFT_TOPOLOGY=mesh:4 devices --list
expect 0 '"max_qp_wr": 4095' "${soft[@]}" devices --json
expect 1 'no verbs library' env RDMA_LIBRARY=/nonexistent devices
expect 1 'there is rdma_en2' devices --provider soft --device rdma_en9
expect 1 '`system` or `soft`' env RDMA_PROVIDER=hard devices
if [ ! -d /sys/class/infiniband ] && [ "$(uname)" = Linux ]; then
    expect 1 'devices: ' env RDMA_PROVIDER=system devices
fi

# The variables count in every program with a fabric of its own.
for program in mesh devices 'pingpong --iters 5' 'pingpong --iters 5 --processes'; do
    # shellcheck disable=SC2086 # the arguments are words
    expect 1 'RDMA_SOFT_PROFILE: there is no profile' env RDMA_PROVIDER=soft RDMA_SOFT_PROFILE=bogus $program
done
expect 1 'is not what was sent' env RDMA_SOFT_FAULTS='corrupt share 1' mesh 2
expect 0 'from 2 to 16' mesh --help
# Two ends that could not meet.
expect 1 'set RDMA_SOFT_FABRIC' env RDMA_PROVIDER=soft pingpong --server 127.0.0.1:0
expect 1 'set RDMA_SOFT_FABRIC' pingpong --provider soft --client 127.0.0.1:9
expect 2 'set RDMA_SOFT_FABRIC' conformance --provider soft --server 127.0.0.1:0

if [ "$(uname)" = Linux ]; then
    expect 0 'a message crosses a software fabric' doctor
    expect 0 '"verdict": ' doctor --json
fi
# What it finds is its result, not an error.
expect 1 'PROBLEM  library' bash -c 'RDMA_LIBRARY=/nonexistent doctor || { echo doctor >&2; exit 1; }'
expect 2 'is no version' doctor --peer-os tahoe
for variable in SOFT_HOTS=SOFT_HOST PROVIDR=PROVIDER; do
    expect 0 "set RDMA_${variable#*=} instead" env "RDMA_${variable%=*}=soft" bash -c 'doctor; [ "$?" -le 1 ]'
done
expect 0 'set RDMA_SOFT_FABRIC to the same name' env RDMA_SOFT_HOST=0 bash -c 'doctor; [ "$?" -le 1 ]'
expect 2 'unexpected argument' doctor --fix
# One line and no panic, whoever does not take the output: a full device, or a reader that has gone.
mkfifo "$scratch/unread"
for program in send_recv zero_copy mesh 'devices --provider soft' doctor 'pingpong --iters 10'; do
    if [ -c /dev/full ]; then
        expect 1 'cannot write the results' bash -c "exec $program >/dev/full"
    fi
    expect 1 'cannot write the results' bash -c "exec 3<>'$scratch/unread' 4>'$scratch/unread' 3<&-; exec $program >&4 4>&-"
done

expect 0 't_typical[usec]' pingpong --iters 1000
expect 0 '8388608' pingpong --all --iters 10
expect 0 '"ratio"' pingpong --json
expect 0 ' usec ' pingpong --histogram --iters 1000 --size 8
expect 0 'MsgRate[Mpps]' pingpong --bandwidth --size 65536 --iters 100
expect 0 '8388608' pingpong --bandwidth --all --iters 10
expect 0 't_typical[usec]' pingpong --processes --iters 1000
expect 0 'MsgRate[Mpps]' pingpong --processes --bandwidth --size 65536 --iters 100
# The longest message fills the whole queue, and needs it for itself.
for mode in "" --bandwidth; do
    for processes in "" --processes; do
        # shellcheck disable=SC2086 # empty is none
        expect 0 '16773120' pingpong $mode $processes --size 16773120 --iters 3 --timeout 5
        # shellcheck disable=SC2086
        expect 0 '12288' env RDMA_SOFT_PROFILE=thunderbolt,depths=3 pingpong $mode $processes --size 12288 --iters 3 --timeout 5
    done
done
expect 2 'empty message' pingpong --size 0
expect 2 'cannot be used with' pingpong --all --size 4
expect 2 'cannot be used with' pingpong --server --client localhost:1
expect 2 'required arguments' pingpong --device rdma_en2
expect 1 'at most 16773120 bytes' pingpong --size 16773121
expect 1 'no verbs library' env RDMA_LIBRARY=/nonexistent pingpong --server
expect 1 'there is rdma_en2' "${soft[@]}" pingpong --server --device rdma_en9
expect 1 'GID[99] is empty' "${soft[@]}" pingpong --server --gid-index 99
expect 1 'no peer connected to 127.0.0.1:' "${soft[@]}" pingpong --server 127.0.0.1:0 --timeout 1
expect 1 'no connection to the peer' "${soft[@]}" pingpong --client 127.0.0.1:9 --timeout 1
expect 2 'it is HOST:PORT' "${soft[@]}" pingpong --client nowhere --timeout 1
expect 1 'cannot listen on' "${soft[@]}" pingpong --server 127.0.0.1:port --timeout 1
# SIGINT after a second, once: without --foreground it comes twice, and the second may not wait for the queue pairs.
expect 130 'interrupted' timeout --foreground --preserve-status -s INT 1 pingpong --iters 100000000
expect 130 'interrupted' timeout --foreground --preserve-status -s INT 1 pingpong --iters 100000000 --bandwidth --size 65536
# The second process takes memory first, and its error is the one that counts.
expect 1 'no second process: ' env RDMA_SOFT_FAULTS='fail ibv_reg_mr 1 ENOMEM' pingpong --processes
expect 1 'ENOMEM' env RDMA_SOFT_FAULTS='fail ibv_reg_mr 1 ENOMEM' pingpong --processes
for signal in INT TERM HUP; do
    expect 130 'interrupted' "${soft[@]}" timeout --foreground --preserve-status -s "$signal" 1 pingpong --server 127.0.0.1:0
done
# As under nohup.
expect 1 'no peer connected' "${soft[@]}" sh -c 'trap "" HUP
    pingpong --server 127.0.0.1:0 --timeout 3 & sleep 1; kill -HUP "$!"; wait "$!"'

expect 0 'Nothing was done.' conformance --plan --risky
expect 0 ' 0 differ, 0 steps were not completed' conformance --risky --report "$scratch/report"
expect 0 '"F301"' cat "$scratch/report"
# What is no plain file is written to, and not replaced.
ln -s report "$scratch/link"
expect 0 'the report is ' conformance --step limits --report "$scratch/link"
test -L "$scratch/link"
expect 0 '"F301"' cat "$scratch/report"
mkfifo "$scratch/pipe"
cat "$scratch/pipe" >"$scratch/piped" &
expect 0 'the report is ' conformance --step limits --report "$scratch/pipe"
wait "$!"
test -p "$scratch/pipe"
expect 0 '"F301"' cat "$scratch/piped"
if [ -c /dev/full ]; then
    # By a link, so that a mistake costs no more than the link.
    ln -s /dev/full "$scratch/full"
    expect 2 'No space left' conformance --step limits --report "$scratch/full"
    test -L "$scratch/full"
fi
expect 2 'start one with --server' conformance --provider system
expect 2 'no verbs library' env RDMA_LIBRARY=/nonexistent conformance --server
expect 2 'there is rdma_en2' conformance --provider soft --device rdma_en9
expect 2 'with --risky only' conformance --step early
expect 2 'no peer connected to 127.0.0.1:' "${soft[@]}" conformance --server 127.0.0.1:0 --timeout 1
expect 130 'interrupted' "${soft[@]}" timeout --foreground --preserve-status -s INT 1 conformance --server 127.0.0.1:0
# Two processes on a shared fabric, first with the devices of this program, then with those of the C library.
cargo build --release --locked -p thunderbolt-librdma
library=$(find "${CARGO_TARGET_DIR:-target}/release" -maxdepth 1 \( -name librdma.so -o -name librdma.dylib \) -print -quit)
[[ $library == /* ]] || library=$PWD/$library
# The C program of docs/c-api.md, where there is the header that it includes.
if echo '#include <infiniband/verbs.h>' | cc -E - >"$scratch/header" 2>&1; then
    sed -n '/^```c$/,/^```$/{/^```/!p;}' docs/c-api.md >"$scratch/devices.c"
    cc -Wall -Wextra -Werror "$scratch/devices.c" -o "$scratch/devices" -L "${library%/*}" -lrdma
    expect 0 'rdma_en2: PORT_ACTIVE' env LD_LIBRARY_PATH="${library%/*}" "$scratch/devices"
    expect 0 'rdma_en5: PORT_ACTIVE' env LD_LIBRARY_PATH="${library%/*}" RDMA_SOFT_TOPOLOGY=mesh:4 "$scratch/devices"
fi
for provider in soft "library:$library"; do
    fabric=(env "RDMA_SOFT_FABRIC=conformance-$$" RDMA_SOFT_PAGE=16384)
    # Here, because the shell in the background empties it when it comes to it, and what an earlier server said is there.
    : >"$scratch/server"
    "${fabric[@]}" RDMA_SOFT_HOST=0 conformance --provider "$provider" --risky --server 127.0.0.1:0 >"$scratch/server" &
    server=$!
    until grep -q 'waiting on' "$scratch/server"; do
        kill -0 "$server"
        sleep 0.1
    done
    address=$(sed -n 's/.*waiting on \([^ ]*\) .*/\1/p' "$scratch/server")
    expect 0 ' 0 differ, 0 steps' "${fabric[@]}" RDMA_SOFT_HOST=1 conformance --provider "$provider" --risky --client "$address"
    wait "$server"
done

# The benchmarks, for a moment: that they work, not what they measure.
expect 0 'safe-table' cargo bench --locked --bench latency -- --test
expect 0 'the slowest pair' cargo bench --locked --bench scale -- --test
expect 0 'Success' cargo bench --locked --bench overhead -- --test

# A server and a client whose cable loses everything connect, and hear nothing of each other. When the server is killed, the
# client must notice.
silence=("${soft[@]}" RDMA_SOFT_FABRIC="killed-$$" RDMA_SOFT_FAULTS='lose share 1')
: >"$scratch/server"
"${silence[@]}" pingpong --server 127.0.0.1:0 >"$scratch/server" 2>&1 &
server=$!
(sleep 3 && kill -KILL "$server") &
until grep -q waiting "$scratch/server"; do
    kill -0 "$server"
    sleep 0.1
done
address=$(sed -n 's/.*waiting on \([^ ]*\) .*/\1/p' "$scratch/server")
expect 1 'the peer is gone' "${silence[@]}" RDMA_SOFT_HOST=1 pingpong --client "$address"
wait "$server" 2>/dev/null || true
