#!/bin/sh
# The order of includes (DESIGN.md): a stage sees headers of its own and of the
# stages before it, written from src/, and akunu/akunu.h. Layers are named by
# folder, best known first; the second column is what each may include besides
# itself. usage: tests/layers.sh [SOURCE-ROOT]
set -u
root=${1:-${AK_TEST_SOURCE:-$(dirname "$0")/..}}
cd "$root" || exit 99

# `backend.h` is the vtable; the list of backends, backend/*.c, knows them all.
find src -name '*.[ch]' -o -name '*.def' | LC_ALL=C sort | xargs awk '
BEGIN {
    may["base"] = ""
    may["quant"] = "base"
    may["op"] = "base quant"
    may["weights"] = "base quant op"
    may["text"] = "base quant op weights"
    may["model"] = "base quant op weights"
    may["backend.h"] = "base quant op weights model"
    may["pack"] = may["backend.h"] " backend.h"
    may["dispatch"] = may["pack"] " pack"
    may["cpu"] = may["dispatch"] " dispatch"
    may["opencl"] = may["dispatch"] " dispatch"
    may["backend"] = may["cpu"] " cpu opencl"
    may["session"] = may["backend"] " backend text"
    may["convert"] = "base quant op weights model backend.h pack text"
    may["api"] = may["session"] " session convert"
    may["cli"] = ""
    isa["avx2"]; isa["avxvnni"]; isa["avx512"]; isa["avx512bf16"]; isa["amx"]; isa["neon"]; isa["neon_i8mm"]
    # bundles that compile the inline functions of another anew
    builds_on["avxvnni"] = "avx2"; builds_on["neon_i8mm"] = "neon"
    builds_on["avx512bf16"] = "avx512"; builds_on["amx"] = "avx512 avx512bf16"
}
function layer(path) {
    return path ~ /^backend\/.*\.h$/ ? "backend.h" : substr(path, 1, index(path, "/") - 1)
}
function bundle(path,    part) {
    return split(path, part, "/") == 3 && part[1] == "cpu" && part[2] in isa ? part[2] : ""
}
function bad(why) {
    printf "%s:%d: %s: %s\n", FILENAME, FNR, $0, why
    n_bad++
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
    n_seen++
    split($0, quoted, "\"")
    header = quoted[2]
    file = substr(FILENAME, 5)
    from = layer(file)
    to = layer(header)
    if (!(from in may)) {
        bad("src/" from " has no place in the order: add it to tests/layers.sh")
    } else if (header == "config.h" || header == "akunu/akunu.h") {
        next
    } else if (!(to in may) || system("test -f \"src/" header "\"") != 0) {
        bad("no such header under src/")
    } else if (to != from && index(" " may[from] " ", " " to " ") == 0 && !(from == "backend" && to == "backend.h")) {
        bad(from " comes before " to (from == "cli" ? "; the command includes akunu/akunu.h and nothing else of the library" : ""))
    } else if (bundle(header) != "" && bundle(header) != bundle(file) && index(" " builds_on[bundle(file)] " ", " " bundle(header) " ") == 0) {
        bad("the " bundle(header) " kernels are private to their bundle")
    }
}
/^[ \t]*#[ \t]*include[ \t]*<(akunu|base|quant|op|weights|text|model|backend|pack|dispatch|cpu|opencl|session|convert|api|cli)\// {
    bad("headers of this project are written in quotes")
}
END {
    if (n_seen == 0) {
        print "no includes found under src/: wrong folder?"
        n_bad++
    }
    exit n_bad > 0
}'
