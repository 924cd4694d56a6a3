#!/bin/sh
# Every command has a man page, which has each of its flags, and docs/flags.md is what
# the program says of itself. AKUNU_REQUIRE_TOOLS=1: without groff it fails.
set -u
cli=${AK_CLI:?} source=${AK_TEST_SOURCE:?}
man=$source/man
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
n_checks=0 n_failed=0

# holds WHAT COMMAND...
holds() {
    what=$1
    shift
    n_checks=$((n_checks + 1))
    "$@" >"$work/out" 2>&1 && return
    n_failed=$((n_failed + 1))
    echo "FAIL $what"
    head -n 8 "$work/out"
}
prints_nothing() {
    "$@" >"$work/printed" 2>&1
    cat "$work/printed"
    [ ! -s "$work/printed" ]
}

groff=$(command -v groff)
if [ -z "$groff" ]; then
    [ "${AKUNU_REQUIRE_TOOLS:-}" != 1 ] || { echo "FAIL: no groff, which AKUNU_REQUIRE_TOOLS=1 requires"; exit 1; }
    echo "SKIPPED: roff of the man pages, no groff"
fi
commands=$("$cli" --help | sed -n '/^Commands/,/^$/s/^  \([a-z-]*\) .*/\1/p')
for command in $commands; do
    page=$work/$command.1
    "$cli" "$command" --help | awk -f "$man/unwrap.awk" >"$work/help"
    awk -v version=0 -f "$man/help.awk" -f "$man/page.awk" "$man/akunu-cli.1" - <"$work/help" >"$page"
    holds "the Makefile installs the page of $command" grep -q "^AK_COMMAND_PAGES = .*man/akunu-cli-$command\.1 " "$AK_TEST_BUILD/Makefile"
    holds "akunu-cli.1 tells of $command" grep -qE "^\.BR? $(echo "$command" | sed 's/-/.-/')( |\$)" "$man/akunu-cli.1"
    for flag in $(sed -n 's/^  \(-[^ ,]*, \|    \)--\([^ ]*\) .*/\2/p' "$work/help"); do
        written=$(echo "$flag" | sed 's/-/\\-/g')
        holds "the page of $command has --$flag" grep -qF -e "\\-\\-$written" "$page"
    done
    if [ -n "$groff" ]; then
        holds "the page of $command is good roff" prints_nothing groff -man -ww -z "$page"
    fi
done
if [ -n "$groff" ]; then
    holds "akunu-cli.1 is good roff" prints_nothing groff -man -ww -z "$man/akunu-cli.1"
fi
sh "$man/flags.sh" "$cli" >"$work/flags.md"
holds "docs/flags.md is up to date: sh man/flags.sh akunu-cli > docs/flags.md" diff "$work/flags.md" "$source/docs/flags.md"

[ $n_checks -gt 50 ] || { echo "only $n_checks checks"; exit 1; }
[ $n_failed -eq 0 ] && echo "$n_checks checks" && exit 0
echo "$n_failed of $n_checks checks failed"
exit 1
