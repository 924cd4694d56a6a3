#!/bin/sh
# The rules of the house that a program can check. usage: tests/house.sh [SOURCE-ROOT]
#
#   tag        a struct, union or enum tag of two headers, or an ak_ tag defined twice
#   include    an include against the order of src/layers.txt
#   symbol     the same of what an object calls, whatever it includes (needs built objects)
#   cycle      folders that include each other in a circle
#   path       a file that is named and not there
#   comment    a source whose first line is not a comment
#   guard      an include guard that is not the path of its header
#   column     a line over 100 columns
#   isa        instruction sets that one list has and another has not
#   vendor     code of src/engine/cpu that asks who made the CPU: a machine is measured, not named
#   name       a function that five files define, each its own: a search finds one too many
#   sampling   a number of struct akunu_sampling_params without its row in sampling.def: it would be no flag, and
#              requests that set it would be ignored
#   drawing    docs/architecture.svg is not what docs/architecture.py draws of src/layers.txt
#
# A finding is a line "CHECK NAME: where and what". tests/house.exceptions lists, as
# "CHECK NAME", those that are known. An exception that is found no more is a failure too.
set -u
objects=$PWD
root=${1:-${AK_TEST_SOURCE:-$(dirname "$0")/..}}
cd "$root" || exit 99
export LC_ALL=C.UTF-8

work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
trap 'exit 99' HUP INT TERM

find src opencl include -name '*.[ch]' -o -name '*.def' -o -name '*.cl' | sort >"$work/code"
{
    find tests bench examples -name '*.[ch]' ! -path 'tests/golden/*'
    find python -name '*.py' ! -path 'python/build/*'
} | sort >"$work/tests"
# Numbers, data of others and what programs wrote say nothing about the project.
find docs man data bench examples tests README.md python/README.md src/README.md src/TERMS.md configure.ac Makefile.am m4 -type f ! -path 'm4/l*' \
    ! -name '*.[ch]' ! -path 'tests/data/*' ! -path 'tests/golden/*.json' ! -path 'tests/fuzz/corpus/*' \
    ! -path 'tests/mutants/*.patch' ! -name '*house*' | sort >"$work/texts"

# Prints the closure of the order, "LAYER: LAYER ...", one line a layer.
layers() {
    awk '
    { sub(/#.*/, "") }
    NF == 0 { next }
    {
        n_links = split($0, link, "<")
        for (i = 1; i <= n_links; i++) {
            n_names = split(link[i], name, ",")
            for (k = 1; k <= n_names; k++) {
                gsub(/[ \t]/, "", name[k])
                seen[name[k]]
                if (i > 1)
                    for (m = 1; m <= n_before; m++)
                        below[name[k], before[m]]
            }
            n_before = n_names
            for (k = 1; k <= n_names; k++)
                before[k] = name[k]
        }
    }
    END {
        for (through in seen)
            for (from in seen)
                for (to in seen)
                    if ((from, through) in below && (through, to) in below)
                        below[from, to]
        for (from in seen) {
            line = from ":"
            for (to in seen)
                if ((from, to) in below)
                    line = line " " to
            print line
        }
    }' src/layers.txt
}
layers | sort >"$work/layers"

# Shared by the awk programs below: what a layer may use, and the layer of a file. Wings are in the same order.
order='
function read_order(file,    line, part) {
    while ((getline line < file) > 0) {
        split(line, part, ":")
        may[part[1]] = part[2] " "
    }
}
function layer(path,    part, n) {
    sub(/^src\//, "", path)
    n = split(path, part, "/")
    return n > 2 && (part[1] "/" part[2]) in may ? part[1] "/" part[2] : part[1]
}
function wing(name) {
    sub(/\/.*/, "", name)
    return name == "opencl" ? "engine" : name
}
function has(from, to) {
    return to == from || index(may[from], " " to " ") > 0
}
function is_below(to, from) {
    return has(from, to) && has(wing(from), wing(to))
}'

check_tag() {
    xargs awk '
    match($0, /^(struct|union|enum)[ ]+[A-Za-z_0-9]+[ ]*\{/) {
        split($0, word, /[ {]+/)
        tag = word[2]
        if (tag in first && (tag ~ /^ak_/ || (FILENAME ~ /\.h$/ && first[tag] ~ /\.h$/)))
            printf "tag %s: %s and %s\n", tag, first[tag], FILENAME
        if (!(tag in first) || first[tag] !~ /\.h$/)
            first[tag] = FILENAME
    }' <"$work/code"
}

check_include() {
    xargs awk -v layers="$work/layers" -v files="$work/code" "$order"'
    BEGIN {
        read_order(layers)
        while ((getline path < files) > 0)
            exists[path]
        # An ISA may use the inline functions of its parent, and an option those of its ISA.
        while ((getline row < "src/engine/cpu/isa.def") > 0)
            if (split(row, field, /[(), ]+/) > 4 && field[1] == "ISA")
                builds_on[field[3]] = tolower(field[4])
        builds_on["avx512bf16"] = "avx512"
        builds_on["amx"] = builds_on["amx"] " avx512bf16"
    }
    function isa_of(path,    part) {
        return split(path, part, "/") == 5 && part[3] == "cpu" && part[4] != "scalar" ? part[4] : ""
    }
    function bad(why) {
        printf "include %s: line %d: %s\n", FILENAME, FNR, why
    }
    /^[ \t]*#[ \t]*include[ \t]*"/ {
        split($0, quoted, "\"")
        header = quoted[2]
        from = layer(FILENAME)
        to = layer("src/" header)
        if (header == "config.h" || header ~ /^akunu\// || header ~ /\.inc$/) # the build makes the last
            next
        if (!(from in may))
            bad("src/" from " is not in src/layers.txt")
        else if (!(("src/" header) in exists) && !(header in exists))
            bad("there is no " header)
        else if (!is_below(to, from))
            bad(from " comes before " to)
        else if (isa_of("src/" header) != "" && isa_of("src/" header) != isa_of(FILENAME) &&
                 index(" " builds_on[isa_of(FILENAME)] " ", " " isa_of("src/" header) " ") == 0)
            bad("kernels of " isa_of("src/" header) " are their ISA'"'"'s own")
    }
    /^[ \t]*#[ \t]*include[ \t]*</ {
        name = $0
        sub(/^[^<]*</, "", name)
        sub(/\/.*/, "", name)
        if (name in may || name == "akunu")
            bad("headers of this project are written in quotes")
    }' <"$work/code"
}

# The folder of each object stands for its layer; libtool keeps one in .libs, one beside it.
check_symbol() {
    find "$objects/src" "$objects/opencl" -name '*.o' ! -path '*/.libs/*' 2>/dev/null | sort >"$work/objects"
    [ -s "$work/objects" ] && command -v nm >/dev/null || return 0
    xargs nm -A -g <"$work/objects" 2>/dev/null | awk -v layers="$work/layers" -v top="$objects/" "$order"'
    BEGIN { read_order(layers) }
    {
        path = substr($1, length(top) + 1)
        sub(/:.*/, "", path)
        from = layer(path)
        name = $NF
        if ($(NF - 1) ~ /^[TDBRVW]$/)
            homes[name] = homes[name] " " from # two programs may each have their own
        else if ($(NF - 1) == "U" && name ~ /^(ak_|app_|cli_)/)
            users[name] = users[name] " " from
        else if ($(NF - 1) == "U" && name ~ /^akunu_/ && from !~ /^apps\//)
            users[name] = users[name] " " from
    }
    function is_home_below(name, user,    home, n, i) {
        n = split(homes[name], home, " ")
        for (i = 1; i <= n; i++)
            if (is_below(home[i], user))
                return 1
        return n == 0 || (n > 1 && user == "apps/common") # what each program gives to what both have
    }
    END {
        for (name in users) {
            n = split(users[name], user, " ")
            for (i = 1; i <= n; i++)
                if (user[i] in may && !is_home_below(name, user[i]) && !((name, user[i]) in reported)) {
                    reported[name, user[i]]
                    printf "symbol %s: %s calls what%s has\n", name, user[i], homes[name]
                }
        }
    }'
}

# A subfolder is a part of its folder: edges between the two do not count.
check_cycle() {
    xargs awk '
    function folder(path) {
        sub(/\/[^\/]*$/, "", path)
        return path
    }
    /^[ \t]*#[ \t]*include[ \t]*"/ {
        split($0, quoted, "\"")
        from = folder(FILENAME)
        to = folder((quoted[2] ~ /^opencl\// ? "" : "src/") quoted[2])
        if (quoted[2] ~ /\// && quoted[2] !~ /^akunu\// && from != to && index(to "/", from "/") != 1 && index(from "/", to "/") != 1) {
            edge[from, to]; node[from]; node[to]
        }
    }
    END {
        for (k in node)
            for (i in node)
                for (j in node)
                    if ((i, k) in edge && (k, j) in edge)
                        edge[i, j]
        for (i in node)
            if ((i, i) in edge)
                printf "cycle %s: includes a folder that includes it\n", i
    }' <"$work/code"
}

# Paths are written from the root, or from src/.
check_path() {
    cat "$work/code" "$work/tests" "$work/texts" | xargs grep -noE \
        '(^|[ `"(])((src|tests|bench|docs|include|man|data|examples|m4|opencl)/|('"$(cut -d: -f1 "$work/layers" | tr '\n' '|' | sed 's/|$//')"')/)[A-Za-z0-9_/.-]*\.(c|h|def|cl|md|sh|py|mk|txt|dump)\b' |
        sed 's/[ `"(]*//' | while IFS=: read -r file line path; do
        path=${path#[ \`\"(]}
        [ -e "$path" ] || [ -e "src/$path" ] || [ -e "include/$path" ] || [ -e "tests/data/$path" ] || echo "$file:$line:$path"
    done | grep -vE ':opencl/sources\.c$|/NAME\.|/LAYER/' |
        awk -F: '{ printf "path %s: line %d: there is no %s\n", $1, $2, $3 }'
}

check_comment() {
    xargs awk 'FNR == 1 && !/^(\/\*|\/\/)/ { printf "comment %s: no comment at its top\n", FILENAME }' <"$work/code"
}

check_guard() {
    grep '\.h$' "$work/code" | grep -v '^include/' | xargs awk '
    FNR == 1 {
        want = FILENAME
        sub(/^src\//, "", want)
        gsub(/[^A-Za-z0-9]/, "_", want)
        want = "AK_" toupper(want)
    }
    /^#ifndef / && !(FILENAME in seen) {
        seen[FILENAME]
        if ($2 ~ /_H$/ && $2 != want)
            printf "guard %s: %s, not %s\n", FILENAME, $2, want
    }'
}

check_column() {
    cat "$work/code" "$work/tests" | xargs grep -nE '^.{101,}' |
        awk -F: '{ printf "column %s: line %d is over 100 columns\n", $1, $2 }'
}

# configure.ac decides; the folder, the Makefile and CI follow.
check_isa() {
    sed -n 's/^AK_ISA(\[\([a-z0-9_]*\)\].*/\1/p' configure.ac | sort >"$work/isa"
    # usage: same LIST: names on stdin
    same() {
        sort -u | comm -3 - "$work/isa" | tr -d '\t' | sed "s|.*|isa &: in one of configure.ac and $1, not in the other|"
    }
    find src/engine/cpu -mindepth 2 -name local.mk | sed 's,src/engine/cpu/\(.*\)/local.mk,\1,' | same src/engine/cpu
    sed -n 's,^include src/engine/cpu/\(.*\)/local.mk$,\1,p' src/engine/cpu/local.mk | same src/engine/cpu/local.mk
    # The scalar kernels are always built; AMX has an option of its own.
    sed -n 's/^ISA[_OPTION]*([A-Z0-9_]*, \([a-z0-9_]*\),.*/\1/p' src/engine/cpu/isa.def | grep -vxE 'scalar|amx_bf16' | same src/engine/cpu/isa.def
}

check_vendor() {
    grep -rniE '__builtin_cpu_is|GenuineIntel|AuthenticAMD|cpuid\(0,' src/engine/cpu |
        awk -F: '{ printf "vendor %s: line %d\n", $1, $2 }'
}

# Definitions begin a line; clang-format keeps the name beside its type.
check_name() {
    xargs awk '
    /^static [^=;]*\(/ && !/;$/ {
        name = $0
        sub(/\(.*/, "", name)
        sub(/.*[ *]/, "", name)
        if (!((name, FILENAME) in seen)) {
            seen[name, FILENAME]
            files[name] = files[name] " " FILENAME
            n[name]++
        }
    }
    END {
        for (name in n)
            if (n[name] >= 5)
                printf "name %s: in%s\n", name, files[name]
    }' <"$work/code"
}

check_sampling() {
    sed -n 's/^AKUNU_SAMPLING(\([a-z0-9]*\), \([a-z_]*\),.*/\1 \2/p' include/akunu/sampling.def | sort >"$work/rows"
    awk '
    /^struct akunu_sampling_params \{/ { inside = 1 }
    /^\};/ { inside = 0 }
    inside && match($0, /^    (float|int32_t) [a-z_, ]+;/) {
        text = substr($0, RSTART + 4, RLENGTH - 5)
        type = text ~ /^float/ ? "f32" : "i32"
        sub(/^[^ ]* /, "", text)
        n = split(text, name, ", ")
        for (i = 1; i <= n; i++)
            print type, name[i]
    }' include/akunu/sample.h | sort | comm -3 - "$work/rows" | tr -d '\t' |
        sed 's/.*/sampling &: in one of sample.h and sampling.def, not in the other/'
}

check_drawing() {
    [ -e docs/architecture.py ] && command -v python3 >/dev/null || return 0
    python3 docs/architecture.py . | cmp -s - docs/architecture.svg ||
        echo "drawing docs/architecture.svg: docs/architecture.py draws another"
}

for check in tag include symbol cycle path comment guard column isa vendor name sampling drawing; do
    "check_$check"
done | sort -u >"$work/found"

cut -d: -f1 "$work/found" | sort -u >"$work/names"
sort -u tests/house.exceptions >"$work/known"
status=0
comm -23 "$work/names" "$work/known" | while read -r name; do
    grep -F "$name:" "$work/found" | head -n 3
done | grep . && status=1
# Without objects nothing is known of symbols.
comm -13 "$work/names" "$work/known" | { [ -s "$work/objects" ] && cat || grep -v '^symbol '; } |
    sed 's/$/: found no more; take it out of tests\/house.exceptions/' | grep . && status=1
[ -s "$work/code" ] || { echo "no sources under $PWD/src: wrong folder?"; status=1; }
exit $status
