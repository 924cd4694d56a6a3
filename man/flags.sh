#!/bin/sh
# docs/flags.md on standard output, from what the program says of itself.
# usage: flags.sh AKUNU-CLI
set -eu
here=$(dirname "$0")
echo "# The flags of every command

Made by \`sh man/flags.sh akunu-cli > docs/flags.md\` of what \`--help\` prints. The long ones are also
the keys of configuration files, and variables of the environment ([cli.md](cli.md))."
for command in $("$1" --help | sed -n '/^Commands/,/^$/s/^  \([a-z-]*\) .*/\1/p'); do
    "$1" "$command" --help | ${AWK:-awk} -f "$here/unwrap.awk"
done | ${AWK:-awk} -f "$here/help.awk" -f "$here/markdown.awk"
