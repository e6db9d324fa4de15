#!/usr/bin/env bash
# Rules about the sources that no compiler knows. Looks at every file that git tracks or would track.
#
#   ci/gates.sh                  all gates
#   ci/gates.sh length words     these only
set -euo pipefail
CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

# The folders whose business is `unsafe`. In tests, benches, examples and fuzz targets it may occur in files that say so.
unsafe_folders='^(rdma-sys|rdma/src/verbs|rdma/src/soft|librdma)/'
unsafe_if_declared='(^|/)(tests|benches|examples|fuzz)/'
longest_file=500
generated='rdma-sys/src/bindings.rs'

# As root in somebody else's checkout git refuses to work; here it only reads.
in_git() {
    git -c safe.directory='*' "$@"
}

# `git grep` with an empty answer where nothing is found. Any other failure ends the script: a gate that could not look
# must not pass.
search() {
    local status=0
    in_git grep --no-color --untracked -nIE "$@" || status=$?
    [ "$status" -le 1 ] || exit "$status"
}

# Whether the file's inner attributes, before any item, allow unsafe code.
declares_unsafe() {
    awk '/^[[:space:]]*(\/\/.*)?$/ { next }
         /^#!\[/ { if (/^#!\[allow\(.*unsafe_code/) found = 1; next }
         { exit }
         END { exit !found }' "$1"
}

# Uses of the keyword. Not `unsafe_code`, nor the word in a comment; a string that reads like code does count.
unsafe() {
    local uses file line text bad=0
    uses=$(search '(^|[^[:alnum:]_])unsafe[[:space:]]*([{(]|(fn|impl|trait|extern)[^[:alnum:]_])' -- '*.rs')
    while IFS=: read -r file line text; do
        [[ -n $file && ! $text =~ ^[[:space:]]*// && ! $file =~ $unsafe_folders ]] || continue
        if [[ $file =~ $unsafe_if_declared ]] && declares_unsafe "$file"; then
            continue
        fi
        echo "$file:$line: unsafe outside its folders:$text"
        bad=1
    done <<<"$uses"
    return "$bad"
}

# Files that want to be several.
length() {
    local files file lines bad=0
    files=$(in_git -c core.quotePath=false ls-files --cached --others --exclude-standard -- '*.rs')
    while IFS= read -r file; do
        [[ $file != "$generated" && -f $file ]] || continue
        lines=$(awk 'END { print NR }' "$file")
        if [ "$lines" -gt "$longest_file" ]; then
            echo "$file: $lines lines; a file is one noun, in $longest_file lines at most"
            bad=1
        fi
    done <<<"$files"
    return "$bad"
}

# What comes from a desk rather than from the project. (The brackets keep the patterns from finding themselves.)
words() {
    local bad=0 where=()
    forbid "a path of somebody's machine" '(^|[^]/[:alnum:]_.$}~-])/(home|Users|root|w[o]rk|f[a]rm)/' || bad=1
    forbid "talk about how it was written" -i 'sub-?a[g]ent|helper a[g]ent|this s[e]ssion|as an A[I] ' || bad=1
    forbid "an unresolved merge" '^(<{7}|>{7}) ' || bad=1
    forbid "a note to self" 'FIX[M]E|D[O] NOT (COMMIT|MERGE)' || bad=1
    return "$bad"
}

# forbid WHAT [OPTION] PATTERN: prints each place in the files of `where` (none: all), and fails if there is one.
forbid() {
    local what=$1 places
    # Explicitly, because errexit is off wherever a caller looks at the status.
    places=$(search "${@:2}" -- "${where[@]}" ':!Cargo.lock' ':!LICENSE-*') || return 1
    [ -n "$places" ] || return 0
    sed "s/\$/  <- $what/" <<<"$places"
    return 1
}

# A reader that stops before the end of its pipe: the writer then gets a SIGPIPE or not, as it happens, and with pipefail a
# script that is right fails now and then. `sed -n '0,/RE/s//…/p'` prints the first match and reads all.
pipes() {
    local where=('*.sh' '.ci/*' 'ci/*' 'benches/compare/*')
    forbid "a reader that stops early" '\|[[:space:]]*(head([^[:alnum:]_-]|$)|grep[[:space:]]+-[[:alpha:]]*[qm]|awk.*;[[:space:]]*exit|sed.*[[:digit:]{;]q[^[:alnum:]])'
}

# Each gate looks and reports, whatever the others found. In a subshell with errexit of its own, so that one which breaks
# on the way fails.
[ "$#" -gt 0 ] || set -- unsafe length words pipes
failed=()
for gate in "$@"; do
    case $gate in
        unsafe | length | words | pipes) ;;
        *) echo "there is no gate '$gate'" >&2; exit 2 ;;
    esac
    set +e
    (set -e; "$gate")
    status=$?
    set -e
    [ "$status" -eq 0 ] || failed+=("$gate")
done
if [ "${#failed[@]}" -gt 0 ]; then
    echo "gates that failed: ${failed[*]}" >&2
    exit 1
fi
