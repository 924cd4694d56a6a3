#!/bin/sh
# What speculative decoding gains and loses, prompt by prompt: each prompt of prompts.txt is
# continued with --spec-type none and auto in turn, and the texts must be the same.
#
#   bench/speculation.sh AKUNU-CLI MODEL [ROUNDS [FLAG...]]
#
# ROUNDS is 5. The FLAGs are those of `akunu-cli run`: without any, 128 tokens with --temp 0.
# A ratio is the median over the rounds of time without drafts / time with them. The last line has
# the 5th percentile, the median and the minimum of the prompts' ratios.
set -u
cli=${1:?usage: speculation.sh AKUNU-CLI MODEL [ROUNDS [FLAG...]]}
model=${2:?usage: speculation.sh AKUNU-CLI MODEL [ROUNDS [FLAG...]]}
rounds=${3:-5}
shift 2
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- -n 128 --temp 0
flags=$*
prompts=$(dirname "$0")/prompts.txt
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# member NAME FILE: a number of the JSON that `run --json` printed.
member() {
    sed -n "s/.*\"$1\": \\([0-9.]*\\).*/\\1/p" "$2"
}

# The text and why it ended.
text() {
    sed 's/"n_prompt": .*//' "$1"
}

# generate TYPE: continues the prompt; leaves $work/TYPE.
generate() {
    # A list of flags.
    # shellcheck disable=SC2086
    "$cli" run -m "$model" -f "$work/prompt" -no-cnv -s 1 --spec-type "$1" --json $flags >"$work/$1" 2>"$work/err" || {
        cat "$work/err" >&2
        exit 1
    }
}

printf '%-8s %8s %8s %6s  %s\n' kind tok/s ratio drafts prompt
tab=$(printf '\t')
while IFS=$tab read -r kind prompt; do
    printf '%b' "$prompt" >"$work/prompt"
    : >"$work/ratios"
    for _ in $(seq "$rounds"); do
        generate none </dev/null
        generate auto </dev/null
        [ "$(text "$work/none")" = "$(text "$work/auto")" ] || {
            echo "speculation.sh: another text with drafts: $prompt" >&2
            exit 1
        }
        awk -v none="$(member generate_seconds "$work/none")" -v auto="$(member generate_seconds "$work/auto")" \
            -v n="$(member n_generated "$work/none")" 'BEGIN { print none / auto, n / none }' >>"$work/ratios"
    done
    sort -g "$work/ratios" |
        prompt=$prompt awk -v kind="$kind" -v drafts="$(member n_accepted "$work/auto")/$(member n_drafted "$work/auto")" '
            { ratio[NR] = $1; speed[NR] = $2 }
            END {
                m = int((NR + 1) / 2)
                printf "%-8s %8.1f %8.3f %6s  %.40s\n", kind, speed[m], ratio[m], drafts, ENVIRON["prompt"]
            }' | tee -a "$work/table"
done <"$prompts"
awk '{ print $3 }' "$work/table" | sort -g | awk '
    { v[NR] = $1 }
    END { i = int(NR * 0.05) + 1; printf "\n5th percentile %.3f, median %.3f, minimum %.3f (%d prompts)\n", v[i], v[int((NR + 1) / 2)], v[1], NR }'
