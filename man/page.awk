# The man page of a command: the flags of its --help, described as in akunu-cli.1 if that page
# has more.
# usage: akunu-cli COMMAND --help | awk -v version=V -f help.awk -f page.awk akunu-cli.1 -

function plain(text)
{
    gsub(/\\/, "\\e", text)
    gsub(/…/, "...", text) # troff has bytes
    gsub(/ -/, " \\-", text)
    gsub(/\(-/, "(\\-", text)
    sub(/^-/, "\\-", text)
    sub(/^[.']/, "\\\\\\&&", text)
    return text
}

function hard(text)
{
    gsub(/\\-/, "-", text)
    gsub(/-/, "\\-", text)
    return text
}

function sentence(text)
{
    text = plain(text)
    return toupper(substr(text, 1, 1)) substr(text, 2) (text ~ /[.!?]$/ ? "" : ".")
}

function put_flag(    block)
{
    block = by_name[name]
    if ((command " " name) in differs)
        block = 0
    if (block && block in shown)
        return
    print ".TP"
    if (block) {
        shown[block] = 1
        print tag[block]
        printf "%s", body[block]
        return
    }
    printf ".B %s\\-\\-%s", brief == "" ? "" : "\\-" hard(brief) ", ", hard(name)
    printf "%s\n", value == "" ? "" : " \\fI" plain(value) "\\fR"
    print sentence(help)
}

BEGIN {
    # Where a flag means something else than in the commands that akunu-cli.1 describes.
    n = split("perplexity ctx-size,report ctx-size,report output,imatrix ctx-size,imatrix file,imatrix chunks,embed prompt,embed file,embed out,detokenize file,logits file,tokenize ids,cache cache-dir,apply-template chat-template,apply-template chat-template-file,transcribe parallel", pairs, ",")
    for (i = 1; i <= n; i++)
        differs[pairs[i]] = 1
}

# ---- akunu-cli.1 ----
FILENAME != "-" && FILENAME != "" {
    if ($1 == ".SH") {
        section = $2
        block = 0
    } else if (section != "COMMANDS" && section != "FLAGS") {
        next
    } else if ($1 == ".TP") {
        block = ++n_blocks
        first = 1
    } else if ($1 == ".SS") {
        block = 0
    } else if (block && first) {
        first = 0
        tag[block] = $0
        if (section == "COMMANDS") {
            gsub(/\\-/, "-")
            prose[$2] = block
        }
        else {
            line = $0
            gsub(/\\-/, "-", line)
            while (match(line, /--[a-z0-9-]+/)) {
                long = substr(line, RSTART + 2, RLENGTH - 2)
                if (!(long in by_name))
                    by_name[long] = block
                line = substr(line, RSTART + RLENGTH)
            }
        }
    } else if (block)
        body[block] = body[block] $0 "\n"
    next
}

# ---- --help ----
FNR == 1 {
    command = $2
    sub(/:$/, "", command)
    summary = $0
    sub(/^[^:]*: /, "", summary)
    printf ".\\\" Made of akunu-cli.1 and of `akunu-cli %s --help`.\n", command
    printf ".TH AKUNU-CLI-%s 1 \"\" \"akunu %s\" \"User Commands\"\n", toupper(command), version
    printf ".SH NAME\nakunu\\-cli\\-%s \\- %s\n.SH SYNOPSIS\n.B akunu\\-cli %s\n", hard(command), plain(summary), hard(command)
    next
}
/^[^ ]/ {
    group = $0
    next
}
group == "Usage" && NF {
    words = words (words == "" ? "" : " | ") $3
    next
}
group == "Example" && NF {
    example = example hard(plain(substr($0, 3))) "\n"
    next
}
/^ / {
    if (!described++) {
        if (words != "")
            printf ".RB [ %s ]\n", words
        print ".RI [ flags ]\n.SH DESCRIPTION"
        if (command in prose) {
            gsub(/\n\.IP\n/, "\n.PP\n", body[prose[command]])
            printf "%s", body[prose[command]]
        }
        else
            print sentence(summary)
        print ".SH OPTIONS"
    }
    if (group != group_shown)
        print ".SS " (group_shown = group)
    split_flag($0)
    put_flag()
}
END {
    printf ".SH EXAMPLE\n.nf\n%s.fi\n", example
    print ".SH SEE ALSO"
    print ".BR akunu\\-cli (1),"
    print "which has the exit status, the environment and the configuration files."
}
