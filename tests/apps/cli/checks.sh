# What tests of akunu-cli share, sourced as the first thing: $cli is the program, $data the models of
# the tests, $work a folder that is removed at the end.
set -u
cli=${AK_CLI:?} data=${AK_TEST_DATA:?}
[ -x "$cli" ] || { echo "no program $cli"; exit 1; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
unset NO_COLOR AKUNU_MODEL AKUNU_THREADS
export AKUNU_CACHE_DIR="$work/packed" XDG_DATA_HOME="$work/data" XDG_CONFIG_HOME="$work/config"
out=$work/out err=$work/err
n_checks=0 n_failed=0

# check NAME: counts what the last command says; shows its output where it fails.
check() {
    status=$?
    n_checks=$((n_checks + 1))
    [ $status -eq 0 ] && return 0
    n_failed=$((n_failed + 1))
    echo "FAIL $1"
    head -c 400 "$out" | sed 's/^/    out: /'
    head -c 400 "$err" | sed 's/^/    err: /'
    return 0
}

# exits CODE ARGUMENT...: runs the program with nothing on standard input.
setting=
exits() {
    want=$1
    shift
    env ${setting:+"$setting"} "$cli" "$@" >"$out" 2>"$err" </dev/null
    got=$?
    [ $got -eq "$want" ]
    check "exit code $got, want $want: $setting $*"
}

# exits_with VARIABLE=VALUE CODE ARGUMENT...: the same with something in the environment.
exits_with() {
    setting=$1
    shift
    exits "$@"
    setting=
}

# within SECONDS COMMAND...: waits until the command succeeds; after that many seconds, times
# CK_TIMEOUT_MULTIPLIER, it fails.
within() {
    left=$(awk -v s="$1" -v m="${CK_TIMEOUT_MULTIPLIER:-1}" 'BEGIN { printf "%d", 20 * s * m }')
    shift
    until "$@"; do
        left=$((left - 1))
        [ $left -gt 0 ] || return 1
        sleep 0.05
    done
}

# says WORD, prints WORD: on standard error, on standard output.
says() {
    grep -qF -e "$1" "$err"
    check "standard error has '$1'"
}
prints() {
    grep -qF -e "$1" "$out"
    check "standard output has '$1'"
}
# Standard output is one line that matches the whole pattern.
prints_line() {
    [ "$(wc -l <"$out")" -eq 1 ] && grep -qxE -e "$1" "$out"
    check "standard output is one line like '$1'"
}
# Standard output has a line that matches the whole pattern.
prints_row() {
    grep -qxE -e "$1" "$out"
    check "standard output has a line like '$1'"
}
prints_nothing() {
    [ ! -s "$out" ]
    check "standard output is empty"
}
says_nothing() {
    [ ! -s "$err" ]
    check "standard error is empty"
}

# logits NAME FLAG...: the logits of $ids, in $work/NAME.npy; same, differs: those of two names.
logits() {
    name=$1
    shift
    exits 0 logits -m "$model" --ids "$ids" --out "$work/$name.npy" "$@"
}
same() {
    cmp -s "$work/$1.npy" "$work/$2.npy"
    check "$1 has the logits of $2"
}
differs() {
    ! cmp -s "$work/$1.npy" "$work/$2.npy"
    check "$1 has other logits than $2"
}

# finish NAME: the last line, and the exit code.
finish() {
    echo "$1: $((n_checks - n_failed)) of $n_checks checks passed"
    [ "$n_failed" -eq 0 ]
}
