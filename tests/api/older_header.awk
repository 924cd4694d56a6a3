# Prints a public header as an older version of akunu would have had it: of each struct that states
# its size, the first half of the members. Comments are gone. Used for tests/api/test_sizes.c.
BEGIN { RS = "\001" }

{
    gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, "")
    text = $0
    print "#define AKUNU_IS_OLDER 1"
    while (match(text, /\nstruct akunu_[a-z_]+ \{[^}]*\};/)) {
        printf "%s", substr(text, 1, RSTART - 1)
        older = substr(text, RSTART, RLENGTH)
        rest = substr(text, RSTART + RLENGTH)
        head = substr(older, 2, index(older, "{") - 1)
        name = head
        gsub(/struct | \{/, "", name)
        if (older ~ /\{[ \n]*size_t size;/ || $0 ~ "struct " name " \\*[a-z]+,[ \n]+size_t size\\)") {
            body = substr(older, length(head) + 2)
            n = split(body, members, ";") - 2
            older = "\n" head
            for (i = 1; i <= (n + 1) / 2; i++)
                older = older members[i] ";"
            older = older "\n};"
        }
        printf "%s", older
        text = rest
    }
    printf "%s", text
}
