# The flags of all commands as tables of Markdown: those of several commands once, in front.
# usage: for each command { akunu-cli COMMAND --help | awk -f unwrap.awk } | awk -f help.awk -f markdown.awk

# Commands that have to share a flag, word for word, for it to stand in front.
BEGIN { SHARED = 3 }

function cell(text)
{
    gsub(/\|/, "\\|", text)
    return text
}

function print_row(group, told, row)
{
    printf "| %s | `%s` | %s |\n", group == told ? "" : group, flag[row], cell(text[row])
}

/^akunu-cli [a-z-]+: / {
    n_commands++
    name_of[n_commands] = $2
    sub(/:$/, "", name_of[n_commands])
    sub(/^[^:]*: /, "")
    title[n_commands] = toupper(substr($0, 1, 1)) substr($0, 2)
    group = ""
    next
}
/^[^ ]/ {
    group = $0
    next
}
(group == "Usage" || group == "Example") && NF {
    example[n_commands] = example[n_commands] substr($0, 3) "\n"
    next
}
/^ / {
    split_flag($0)
    names = (brief == "" ? "" : "-" brief ", ") "--" name
    row = group SUBSEP names SUBSEP value SUBSEP help
    if (!(row in n_uses)) {
        order[++n_rows] = row
        flag[row] = names (value == "" ? "" : " " value)
        text[row] = help
        group_of[row] = group
        short[row] = brief == "" ? "--" name : "-" brief
    }
    n_uses[row]++
    of_command[n_commands, ++n_flags[n_commands]] = row
}
END {
    print "\n## Shared flags\n\nAt least " SHARED " commands have each of these; the lists below say which.\n"
    print "| | flag | |\n|---|---|---|"
    # The groups one after another, each in the order in which its flags were met.
    for (i = 1; i <= n_rows; i++) {
        group = group_of[order[i]]
        if (n_uses[order[i]] < SHARED || group in printed)
            continue
        printed[group] = 1
        told = ""
        for (j = i; j <= n_rows; j++)
            if (group_of[order[j]] == group && n_uses[order[j]] >= SHARED) {
                print_row(group, told, order[j])
                told = group
            }
    }
    for (c = 1; c <= n_commands; c++) {
        printf "\n## %s\n\n%s.\n\n```sh\n%s```\n", name_of[c], title[c], example[c]
        told = shared = ""
        for (i = 1; i <= n_flags[c]; i++) {
            row = of_command[c, i]
            if (n_uses[row] >= SHARED) {
                shared = shared (shared == "" ? "" : ", ") "`" short[row] "`"
                continue
            }
            if (told == "")
                print "\n| | flag | |\n|---|---|---|"
            print_row(group_of[row], told, row)
            told = group_of[row]
        }
        if (shared != "")
            print "\nShared: " shared "."
    }
}
