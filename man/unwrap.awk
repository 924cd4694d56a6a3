# Joins the lines of one flag in what `akunu-cli COMMAND --help` prints.
/^                               [^ ]/ {
    sub(/^ +/, " ")
    kept = kept $0
    next
}
NR > 1 { print kept }
{ kept = $0 }
END { print kept }
