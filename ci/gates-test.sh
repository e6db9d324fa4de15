#!/usr/bin/env bash
# Whether ci/gates.sh notices what it is there for, and lets pass what is right: a gate that cannot fail is none.
# It works on a repository of its own, made for the purpose and removed afterwards.
set -euo pipefail

script=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)/gates.sh
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
mkdir "$folder/ci"
cp -- "$script" "$folder/ci/gates.sh"
cd -- "$folder"
# Of the surrounding repository nothing must be heard (a git hook sets these).
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
git init -q .

wrong=0

# put FILE TEXT: the file alone, with that text.
put() {
    git clean -qfdx -e ci
    mkdir -p -- "$(dirname -- "$1")"
    printf '%b\n' "$2" >"$1"
}

# refuse GATE FILE TEXT, accept GATE FILE TEXT: what the gate must say.
refuse() {
    put "$2" "$3"
    local output
    if output=$(ci/gates.sh "$1" 2>&1) || ! grep -qF -- "$2:" <<<"$output"; then
        printf 'gate %s: not refused in %s: %s\n%s\n' "$1" "$2" "$3" "$output"
        wrong=1
    fi
}

accept() {
    put "$2" "$3"
    local output
    if ! output=$(ci/gates.sh "$1" 2>&1); then
        printf 'gate %s: refused in %s: %s\n%s\n' "$1" "$2" "$3" "$output"
        wrong=1
    fi
}

safe=rdma/src/queue_pair.rs
for use in 'unsafe { f() }' 'unsafe fn f() {}' 'unsafe impl Send for T {}' 'unsafe trait T {}' 'unsafe extern "C" {}' \
    '    let x = unsafe{ f() };' 'pub unsafe extern "C" fn f() {}' '#[unsafe(no_mangle)]' 'f(|| unsafe { g() }); // why'; do
    refuse unsafe "$safe" "$use"
    accept unsafe rdma/src/verbs/qp.rs "$use"
    accept unsafe rdma/src/soft/qp.rs "$use"
    accept unsafe rdma-sys/tests/loading.rs "$use"
    accept unsafe librdma/src/lib.rs "$use"
    refuse unsafe rdma/tests/suite.rs "$use"
    refuse unsafe rdma/src/verbs_of_ours.rs "$use"
    refuse unsafe rdma/src/librdma/mod.rs "$use"
    refuse unsafe examples/pingpong.rs "//! Text.\n\nfn main() {}\n#![allow(unsafe_code)]\n$use"
    accept unsafe examples/pingpong.rs "//! Text.\n\n#![warn(x)]\n#![allow(unsafe_code)] // why\n\n$use"
    refuse unsafe rdma/src/pd.rs "#![allow(unsafe_code)]\n$use"
done
for other in '#![deny(unsafe_code)]' '// unsafe { f() }' '    /// unsafe fn f()' 'let not_unsafe = 1;' '#![forbid(unsafe_op_in_unsafe_fn)]'; do
    accept unsafe "$safe" "$other"
done

lines() { printf '// %s\\n' $(seq "$1"); }
refuse length "$safe" "$(lines 500)"
accept length "$safe" "$(lines 499)"
accept length rdma-sys/src/bindings.rs "$(lines 900)"

for place in '/ho''me/someone/x' 'see (/Us''ers/someone/x)' 'path = "/ro''ot/x"' '/wo''rk/x' 'This ses''sion' \
    'a suba''gent' '<<<<''<<< HEAD' '>>>>''>>> branch' '// FIX''ME later'; do
    refuse words docs/notes.md "$place"
done
for place in 'https://example.org/home/x' '$root/root/x' 'docs/wo''rk/x' '/usr/lib/librdma.dylib' 'a session' '======='; do
    accept words docs/notes.md "$place"
done

for pipe in 'ls | he''ad -n 1' 'f | gr''ep -q x' 'f | gr''ep -om1 x' 'x=$(f | aw''k "/x/ { print; exit }")' 'f | se''d -n "/x/{p;q}"'; do
    refuse pipes benches/compare/run.sh "$pipe"
    accept pipes docs/notes.md "$pipe"
done
for pipe in 'head -n 1 file' 'grep -q x file || y' 'f | tail -n 1' 'f | grep -o x' 'f | awk "NR == 1"' 'f | sed -n "0,/x/p"'; do
    accept pipes benches/compare/run.sh "$pipe"
done

# Where git cannot look, nothing may pass.
put "$safe" 'fn f() {}'
mv .git elsewhere
for gate in unsafe length words pipes; do
    if GIT_CEILING_DIRECTORIES=${folder%/*} ci/gates.sh "$gate" >/dev/null 2>&1; then
        echo "gate $gate: passed without a repository"
        wrong=1
    fi
done
exit "$wrong"
