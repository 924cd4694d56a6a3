# The flags of a command as a table of Markdown.
# usage: akunu-cli COMMAND --help | awk -f help.awk -f markdown.awk

function cell(text)
{
    gsub(/\|/, "\\|", text)
    return text
}

NR == 1 {
    command = $2
    sub(/:$/, "", command)
    sub(/^[^:]*: /, "")
    printf "\n## %s\n\n%s%s.\n", command, toupper(substr($0, 1, 1)), substr($0, 2)
    next
}
/^[^ ]/ {
    group = $0
    next
}
(group == "Usage" || group == "Example") && NF {
    if (!fenced++)
        print "\n```sh"
    print substr($0, 3)
    next
}
/^ / {
    if (!tabled++)
        print "```\n\n| | flag | |\n|---|---|---|"
    split_flag($0)
    printf "| %s | `%s--%s%s` | %s |\n", group == told ? "" : group, brief == "" ? "" : "-" brief ", ", name, value == "" ? "" : " " value, cell(help)
    told = group
}
