#!/bin/sh
# One page about this machine: its limits, the kernels of each type, whole models. In at most three
# minutes with two cores. Run by make bench.
#
#   bench/page.sh KERNELS AKUNU-CLI [MODEL...]
#
# KERNELS is the program bench/kernels. No MODEL: those of the user's models folder, the smallest
# and the largest of at most 1.5 GB. AKUNU_PEER_BENCH: the llama-bench of llama.cpp or
# ik_llama.cpp, which then takes turns with akunu-cli bench; its options after the program's name
# are passed on, as in "llama-bench -rtr 1".
set -u
kernels=${1:?usage: page.sh KERNELS AKUNU-CLI [MODEL...]} cli=${2:?the program akunu-cli}
shift 2
rounds=3 prompt=512 generated=64
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# The smallest and the largest model that is small enough for this page.
find_models() {
    folder=${XDG_DATA_HOME:-${HOME:-/nonexistent}/.local/share}/akunu/models
    find "$folder" -maxdepth 1 -name '*.gguf' -size -1500000k -printf '%s %p\n' 2>/dev/null |
        sort -n | cut -d' ' -f2- | sed -n '1p;$p' | uniq
}

# The median of the numbers of standard input.
median() {
    sort -g | awk '{ v[NR] = $1 } END { if (NR) print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}

# The rows of bench/kernels as one line per type. Prints the lines about the machine first.
kernel_table() {
    awk '
        / threads, k = / { threads = $2; print; next }
        $3 ~ /^(tiles|stored|gemm|panel)$/ {
            gsub(/ %/, "")
            if (!($4 in seen)) { seen[$4] = 1; order[++n] = $4 }
            if ($3 == "tiles" || $3 == "stored")
                cell[$4, $2, $5] = sprintf("%6.1f %4s", $6, $7)
            else if ($5 == 512)
                gemm[$4, $2] = sprintf("%6.0f %4s", $(NF - 1), $NF)
        }
        END {
            printf "\n%-8s %15s %15s %15s %15s\n", "type", "1 token", "1 token", "4 tokens", "512 tokens"
            printf "%-8s %15s %15s %15s %15s\n", "", "1 thread", threads " threads", threads " threads", threads " threads"
            printf "%-8s %15s %15s %15s %15s\n", "", "GB/s % limit", "GB/s % limit", "GB/s % limit", "GOPS % limit"
            for (i = 1; i <= n; i++)
                printf "%-8s %15s %15s %15s %15s\n", order[i], cell[order[i], 1, 1], cell[order[i], threads, 1], cell[order[i], threads, 4], gemm[order[i], threads]
        }' "$1"
}

# ours ROUND MODEL: adds rows "ROUND TEST akunu TOKENS/S PERCENT THREADS".
ours() {
    "$cli" bench -m "$2" -p $prompt -n $generated -r 1 -o csv 2>"$work/err" |
        awk -F, -v round="$1" 'NR > 1 { print round, $1, "akunu", $11, $7, $10 }' >>"$work/rows"
}
# peer ROUND MODEL: adds rows "ROUND TEST peer TOKENS/S". The peer's CSV has quotes and names its
# columns.
peer() {
    threads=$(awk 'NR == 1 { print $6 }' "$work/rows")
    # A program and its options.
    # shellcheck disable=SC2086
    $AKUNU_PEER_BENCH -m "$2" -p $prompt -n $generated -t "$threads" \
        -fa 1 -r 1 -o csv 2>"$work/err" |
        awk -F'","' -v round="$1" '
            { gsub(/^"|"$/, "") }
            NR == 1 { gsub(/"/, ""); n = split($0, name, ","); for (i = 1; i <= n; i++) column[name[i]] = i; next }
            {
                test = $column["n_gen"] > 0 ? "tg" $column["n_gen"] : "pp" $column["n_prompt"]
                print round, test, "peer", $column["avg_ts"]
            }' >>"$work/rows"
}
# figure TEST WHO COLUMN: the median over the rounds. ratio TEST: that of the rounds' ratios.
figure() {
    awk -v t="$1" -v w="$2" -v c="$3" '$2 == t && $3 == w { print $c }' "$work/rows" | median
}
ratio() {
    awk -v t="$1" '$2 == t { v[$1, $3] = $4; if (($1, "akunu") in v && v[$1, "peer"] > 0) print v[$1, "akunu"] / v[$1, "peer"] }' "$work/rows" |
        median
}

"$kernels" --kernel tiles,stored,gemm,panel --n 1,4 --prefetch best --time 0.02 >"$work/kernels" || exit 1
kernel_table "$work/kernels"

[ $# -gt 0 ] || {
    find_models >"$work/models"
    while IFS= read -r model; do set -- "$@" "$model"; done <"$work/models"
}
if [ $# -eq 0 ]; then
    printf '\nNo models: give some as MODELS="a.gguf b.gguf", or let ./quickstart fetch one.\n'
    exit 0
fi
printf '\n%-44s %-6s %9s %8s' model test tokens/s '% limit'
[ -z "${AKUNU_PEER_BENCH:-}" ] || printf ' %9s %6s' peer ratio
echo
for model; do
    : >"$work/rows"
    for round in $(seq $rounds); do
        ours "$round" "$model"
        [ -z "${AKUNU_PEER_BENCH:-}" ] || peer "$round" "$model"
    done
    [ -s "$work/rows" ] || { cat "$work/err" >&2; exit 1; }
    for test in pp$prompt tg$generated; do
        printf '%-44.44s %-6s %9.1f %8.0f' "$(basename "$model")" "$test" "$(figure "$test" akunu 4)" "$(figure "$test" akunu 5)"
        [ -z "${AKUNU_PEER_BENCH:-}" ] || printf ' %9.1f %6.2f' "$(figure "$test" peer 4)" "$(ratio "$test")"
        echo
    done
done
