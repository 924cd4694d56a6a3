# Reads a line of `akunu-cli COMMAND --help`.

# "    --name VALUE   help": sets name, value, brief and help.
function split_flag(line,    rest)
{
    brief = ""
    if (match(line, /^  -[^ ,]+, /)) {
        brief = substr(line, 4, RLENGTH - 5)
        rest = substr(line, RLENGTH + 1)
    } else {
        rest = line
        sub(/^ +/, "", rest)
    }
    match(rest, /^--[^ ]+/)
    name = substr(rest, 3, RLENGTH - 2)
    rest = substr(rest, RLENGTH + 1)
    value = ""
    if (match(rest, /^ [A-Z][^ ]* /)) {
        value = substr(rest, 2, RLENGTH - 2)
        rest = substr(rest, RLENGTH)
    }
    sub(/^ +/, "", rest)
    help = rest
}
