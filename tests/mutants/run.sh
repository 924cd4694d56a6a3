#!/bin/sh
# Runs the mutants: each patch of this folder is a small wrong edit of the source, and
# names the test that must notice it. README.md says how a patch looks.
#
# `make check-mutants` starts this in the build folder with the environment of the
# tests, $MAKE and, for some mutants alone, MUTANTS="61 75".
#   1. mutants/tree is a copy of the source with all patches applied, built once. A
#      patch does nothing until AK_MUTANT is its number (mutant.h).
#   2. Each named test runs without AK_MUTANT: it must pass.
#   3. Each mutant runs against its test, which must fail, crash or hang.
# The last line is `N caught, M survived`; the status is 1 if any survived.
#
# `make check-generated` starts it with --generated: generate.py makes $EACH mutants in each
# of $FOLDERS (those of the file `folders`, which names their tests) by the seed $SEED. A
# table says how many were killed; `equivalent` lists those that change nothing.
set -u
source=${AK_TEST_SOURCE:?} make=${MAKE:-make}
patches=$source/tests/mutants
top=${AK_MUTANTS_TOP:-$PWD} # the build folder
work=$top/mutants
build=${AK_MUTANTS_BUILD:-$work/tree/build}
jobs=$(getconf _NPROCESSORS_ONLN)

fail() {
    echo "check-mutants: $*" >&2
    exit 1
}

# ---- What a patch says ---------------------------------------------------------

# number PATCH: 7 for 07-name.patch
number() {
    basename "$1" | sed 's/^0*//; s/-.*//'
}

# field NAME PATCH: what follows `NAME: ` in the lines before the diff
field() {
    sed -n "/^--- /q; s/^$1: *//p" "$2"
}

# touched PATCH...: the files that patches edit
touched() {
    sed -n 's,^+++ b/\([^[:space:]]*\).*,\1,p' "$@" | sort -u
}

check_patch() {
    n=$(number "$1") name=$(basename "$1")
    case $n in
    '' | *[!0-9]*) fail "$name: its name does not begin with a number" ;;
    esac
    [ -n "$(field Breaks "$1")" ] || fail "$name: no line \`Breaks: \`"
    program=$(field Test "$1")
    program=${program%% *}
    case $program in
    '') fail "$name: no line \`Test: \`" ;;
    *.sh) test=$program ;;
    *) test=$program.c ;;
    esac
    [ -f "$source/$test" ] || fail "$name: no test $test"
    switches=$(grep '^+' "$1" | grep -o 'AK_MUTANT([0-9]*)' | sort -u)
    [ "$switches" = "AK_MUTANT($n)" ] || fail "$name: its edits need AK_MUTANT($n) and no other"
    touched "$1" | grep -q . || fail "$name: no file to edit"
    ! touched "$1" | grep -Ev '^(src|opencl)/.*\.(c|h|def)$' || fail "$name: edits what is not a C source under src/ or opencl/"
}

# ---- Running a test ------------------------------------------------------------

# named TEST: a name for files of a test and its TCase
named() {
    printf '%s' "$1" | tr -c 'A-Za-z0-9' '_'
}

# run_test TEST NAME SECONDS: the exit status of the test; its output is $work/NAME.log.
run_test() {
    program=${1%% *} tcase=${1#* }
    [ "$tcase" != "$1" ] && export CK_RUN_CASE="$tcase"
    home=$work/home/$2
    mkdir -p "$home" || exit 1
    export XDG_CONFIG_HOME="$home" XDG_CACHE_HOME="$home" AKUNU_CACHE_DIR="$home/akunu" TMPDIR="$home"
    export AK_CLI="$build/akunu-cli" AK_TEST_BUILD="$build"
    export MALLOC_PERTURB_=165 # glibc overwrites freed memory, so whoever still reads it notices
    case $program in
    tests/test_python.sh) # the package of the copy, with this build's library: a sanitized one cannot be loaded
        export AK_TEST_SOURCE="$work/tree" AK_TEST_BUILD="$top"
        set -- "$2" "$3" sh "$source/$program"
        ;;
    *.sh) set -- "$2" "$3" sh "$source/$program" ;;
    *) set -- "$2" "$3" "./$program" ;;
    esac
    log=$work/$1.log limit=$2
    shift 2
    cd "$build" && timeout -k 10 "$limit" "$@" </dev/null >"$log" 2>&1
    status=$?
    rm -rf "$home"
    return $status
}

# A test without AK_MUTANT passes. Leaves the seconds that it took, or nothing where
# this build or machine skips it.
run_baseline() {
    name=$(named "$1") program=${1%% *}
    case $program in
    *.sh) ;;
    *) [ -x "$build/$program" ] || { echo "skipped: this build has no $program"; exit 0; } ;;
    esac
    began=$(date +%s)
    run_test "$1" "$name" "$(seconds 600)"
    status=$?
    took=$(($(date +%s) - began))
    [ $status -eq 77 ] && { echo "skipped here: $1"; exit 0; }
    [ $status -eq 0 ] || fail "$1 fails without a mutant, with status $status: $work/$name.log"
    case $program in
    *.sh) ;;
    *) grep -q '%: Checks: [1-9]' "$work/$name.log" || fail "$1: no such TCase" ;;
    esac
    echo "$took" >"$work/$name.seconds"
}

# seconds N: N times CK_TIMEOUT_MULTIPLIER, by which libcheck scales its own limits
seconds() {
    awk "BEGIN { printf \"%d\", $1 * ${CK_TIMEOUT_MULTIPLIER:-1} + 0.5 }"
}

run_mutant() {
    n=$(number "$1") name=$(basename "$1" .patch)
    test=$(field Test "$1") needs=$(field Needs "$1")
    baseline=$work/$(named "$test").seconds
    skip=
    [ -f "$baseline" ] || skip="no $test here"
    for isa in $needs; do
        grep -qw "$isa" "$work/isas" || skip="no $isa here"
    done
    if [ -n "$skip" ]; then
        echo "skipped   $name: $skip" | tee "$work/$name.result"
        return
    fi
    AK_MUTANT=$n
    export AK_MUTANT
    run_test "$test" "$name" "$(seconds $((30 + 5 * $(cat "$baseline"))))"
    status=$?
    how=
    grep -Eq ':E:.*(Received signal|Early exit)' "$work/$name.log" && how=" (crash)"
    grep -q ':E:.*Test timeout expired' "$work/$name.log" && how=" (timeout)"
    case $status in
    0) echo "SURVIVED  $name: $test passes. $(touched "$1" | tr '\n' ' ')Breaks: $(field Breaks "$1")" ;;
    77) echo "SURVIVED  $name: $test is skipped. Breaks: $(field Breaks "$1")" ;;
    124 | 137) echo "caught    $name (timeout)" ;;
    *) echo "caught    $name$how" ;;
    esac | tee "$work/$name.result"
}

# ---- 1: the patched tree ---------------------------------------------------------

# Sets $all, the patches, and $chosen, those that are run. $1: their numbers, or nothing.
choose_patches() {
    all=$(ls "$patches"/*.patch | sort)
    for p in $all; do
        check_patch "$p"
    done
    twice=$(for p in $all; do number "$p"; done | sort | uniq -d | tr '\n' ' ')
    [ -z "$twice" ] || fail "more than one patch has the number $twice"
    chosen=$all
    [ -z "$1" ] && return
    chosen=
    for n in $1; do
        p=$(for p in $all; do [ "$(number "$p")" = "$n" ] && echo "$p"; done)
        [ -n "$p" ] || fail "no patch has the number $n"
        chosen="$chosen $p"
    done
}

copy_tree() {
    rm -rf "$work"
    mkdir -p "$work" || exit 1
    $make distdir distdir=mutants/tree >"$work/build.log" 2>&1 || { tail "$work/build.log"; fail "make distdir: $work/build.log"; }
    chmod -R u+w "$work/tree"
}

# add_switch FILE...: puts mutant.h before each
add_switch() {
    for file; do
        { cat "$patches/mutant.h" && echo '#line 1' && cat "$work/tree/$file"; } >"$work/file" && mv "$work/file" "$work/tree/$file" || exit 1
    done
}

patch_tree() {
    copy_tree
    for p in $all; do
        patch -s -p1 -F0 -f -r - --no-backup-if-mismatch -d "$work/tree" -i "$p" || fail "$(basename "$p") does not apply"
    done
    # A list of words.
    # shellcheck disable=SC2046
    add_switch $(touched $all)
}

# Builds the command, the server and test programs $1, with this build's arguments of configure and
# those after $1. Programs that it leaves out have no rule: their mutants are skipped.
build_tree() (
    programs=$1
    shift
    # kernels of other machines cannot run here, and wrong code may be worth a warning
    mkdir "$build" && eval "configure_tree $(./config.status --config)" '"$@"' || exit 1
    cd "$build" || exit 1
    rules=$(for p in $programs; do grep -q "^$p\$(EXEEXT):" Makefile && echo "$p"; done)
    server=$(sed -n 's/^\(akunu-server\)$(EXEEXT):.*/\1/p' Makefile)
    MAKEFLAGS= $make -j "$jobs" akunu-cli $server $rules >>"$work/build.log" 2>&1 || exit 1
    ./akunu-cli --version | sed -n 's/^instruction sets: //p' >"$work/isas"
)

configure_tree() (
    cd "$build" && CONFIG_SITE=/dev/null ../configure "$@" --disable-shared --disable-werror --enable-isa=native >"$work/build.log" 2>&1
)

# ---- 2 and 3: the tests pass, the mutants are caught -------------------------------

# each OPTION [N]: this script with OPTION and each line of its input, N at once
each() {
    tr '\n' '\0' | AK_MUTANTS_TOP=$top AK_MUTANTS_BUILD=$build xargs -0 -P "${2:-$jobs}" -n 1 sh "$0" "$1"
}

run_all() {
    unset AK_MUTANT CK_FORK CK_RUN_CASE CK_RUN_SUITE CK_VERBOSITY AKUNU_CPU
    command -v patch >/dev/null && command -v timeout >/dev/null || fail "patch and timeout are needed"
    choose_patches "$1"
    tests=$(for p in $chosen; do field Test "$p"; done | sort -u)
    echo "check-mutants: copies and patches the source, builds in $build"
    patch_tree
    build_tree "$(echo "$tests" | sed 's/ .*//; /\.sh$/d' | sort -u)" ||
        { tail "$work/build.log"; fail "the patched source does not build: $work/build.log"; }
    echo "check-mutants: runs $(echo "$tests" | wc -l) tests without a mutant"
    echo "$tests" | each --baseline || exit 1
    for p in $chosen; do echo "$p"; done | each --mutant
    cat "$work"/*.result >"$work/results"
    survived=$(grep -c '^SURVIVED' "$work/results")
    skipped=$(grep -c '^skipped' "$work/results")
    [ "$skipped" -eq 0 ] || echo "$skipped skipped"
    echo "$(grep -c '^caught' "$work/results") caught, $survived survived"
    [ "$survived" -eq 0 ]
}

# ---- Generated mutants -------------------------------------------------------------

# tests_of FOLDER: the tests that `folders` names for it
tests_of() {
    sed -n "s,^$1  *,,p" "$patches/folders"
}

# run_one_generated LINE: a mutant of generate.py's list against its folder's tests, up to the first that fails.
run_one_generated() {
    tab=$(printf '\t')
    n=${1%%"$tab"*} rest=${1#*"$tab"}
    folder=${rest%%"$tab"*}
    AK_MUTANT=$n
    export AK_MUTANT
    result=SURVIVED
    for test in $(tests_of "$folder"); do
        baseline=$work/$(named "$test").seconds
        [ -f "$baseline" ] || continue
        run_test "$test" "generated-$n" "$(seconds $((30 + 5 * $(cat "$baseline"))))"
        case $? in
        0 | 77) ;;
        *) result="killed by $test" && break ;;
        esac
    done
    # file, operator, before, after, source line: its number and that of the mutant change
    key=$(printf '%s' "$rest" | cut -f2- | sed 's/:[0-9]*\t/\t/; s/AK_MUTANT([0-9]*)/AK_MUTANT/g')
    [ "$result" != SURVIVED ] || ! grep -qF -e "$key$tab" "$patches/equivalent" || result=equivalent
    printf '%s\t%s\n' "$result" "$rest" | tee "$work/generated-$n.result"
}

# A line of the table: the counts of a folder, or of all.
count_generated() {
    awk -F '\t' -v folder="$1" '
        folder != "all" && $2 != folder { next }
        { n++; killed += ($1 ~ /^killed/); equivalent += ($1 == "equivalent") }
        END { printf "%-19s %5d %7d %9d %11d %7.0f %%\n", folder, n, killed, n - killed - equivalent, equivalent, (n > equivalent) ? 100 * killed / (n - equivalent) : 100 }' "$work/results"
}

# run_listed LIST ARGUMENT...: builds with these arguments of configure, and runs the mutants of a list. One that
# waits for ever needs no processor, so twice as many run at once as there are.
run_listed() {
    list=$1
    shift
    tests=$(for folder in $(cut -f 2 "$list" | sort -u); do tests_of "$folder" | tr ' ' '\n'; done | sed '/^$/d' | sort -u)
    build_tree "$(echo "$tests" | sed '/\.sh$/d')" "$@" CC=gcc ||
        { tail "$work/build.log"; fail "the mutants do not build: $work/build.log"; }
    echo "$tests" | each --baseline || exit 1
    each --one-generated $((2 * jobs)) <"$list"
}

run_generated() {
    unset AK_MUTANT CK_FORK CK_RUN_CASE CK_RUN_SUITE CK_VERBOSITY AKUNU_CPU
    folders=${1:-$(sed -n 's,^\([a-z/]*\)  *tests/.*,\1,p' "$patches/folders")}
    copy_tree
    # A list of words.
    # shellcheck disable=SC2086
    "${PYTHON:-python3}" "$patches/generate.py" "$work/tree" --config "$top" --each "${EACH:-60}" --seed "${SEED:-1}" $folders >"$work/generated.list" ||
        fail "generate.py (apt-get install python3-clang-14)"
    cp "$patches/mutant.py" "$work/tree/python" || exit 1
    # shellcheck disable=SC2046
    add_switch $(cut -f 3 "$work/generated.list" | sed 's/:.*//; /\.py$/d' | sort -u)
    # Most are killed in the plain build, which is several times as fast. Memory that is not freed and
    # reads past an end are noticed by the sanitizers alone, so those that survive run there too.
    run_listed "$work/generated.list" CFLAGS='-O1 -g1'
    grep -l '^SURVIVED' "$work"/generated-*.result | sed 's/.*generated-//; s/\.result//' >"$work/survived"
    awk -F '\t' 'NR == FNR { survived[$1]; next } $1 in survived' "$work/survived" "$work/generated.list" >"$work/survived.list"
    build=$work/tree/sanitized
    [ ! -s "$work/survived.list" ] || run_listed "$work/survived.list" --enable-sanitizers=address,undefined \
        AK_KERNEL_CFLAGS=-fno-sanitize=all CFLAGS='-O1 -g1 --param asan-instrumentation-with-call-threshold=100'
    cat "$work"/generated-*.result >"$work/results"
    printf '%-19s %5s %7s %9s %11s %9s\n' folder all killed survived equivalent killed
    for folder in $folders all; do
        count_generated "$folder"
    done
    [ -z "${AT_LEAST:-}" ] || [ "$(count_generated all | awk '{ print $6 }')" -ge "$AT_LEAST" ]
}

# The script starts itself for each test and each mutant, so that xargs runs some at once.
case ${1-} in
--baseline) run_baseline "$2" ;;
--mutant) run_mutant "$2" ;;
--generated) run_generated "$2" ;;
--one-generated) run_one_generated "$2" ;;
*) run_all "${1-}" ;;
esac
