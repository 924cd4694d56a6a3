#!/bin/sh
# bench/scale.py: its help, and predictions for a shape and for a file. $AK_CLI, $AK_TEST_DATA,
# $AK_TEST_SOURCE: as in test_cli.sh.
. "${AK_TEST_SOURCE:?}/tests/apps/cli/checks.sh"
PYTHON=${PYTHON:-python3}
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || {
    echo "SKIPPED: no python3 of 3.9 or newer"
    [ "${AKUNU_REQUIRE_TOOLS:-0}" = 1 ] && exit 1
    exit 77
}
export PYTHONDONTWRITEBYTECODE=1

# scale ARGUMENT...: runs the simulator.
scale() {
    "$PYTHON" "$AK_TEST_SOURCE/bench/scale.py" "$@" >"$out" 2>"$err" </dev/null
}
# has CONDITION: a Python expression of the list r, which the simulator printed as JSON.
has() {
    "$PYTHON" -c "import json, sys; r = json.load(open(sys.argv[1])); sys.exit(not ($1))" "$out"
    check "$1"
}

scale --help
check "scale.py --help"
scale predict -m llama-3.1-70b -n 1,8,16 --link 25 --latency 20 --cores 16 -b 512 --json
check "scale.py predicts a shape"
has "[x['ranks'] for x in r] == [1, 8, 8, 16, 16] and r[1]['split'] == 'rows'"
has "abs(r[0]['gigabytes'] - 42.1) < 1 and r[1]['gigabytes'] == r[0]['gigabytes'] / 8"
has "r[1]['decode'] > r[0]['decode'] > r[2]['decode']"
has "r[2]['prompt'] < r[0]['prompt']" # a prompt of one chunk gains nothing from a pipeline
scale predict -m llama-3.1-70b -n 8 --link 1 --latency 20 -p 8192 --json
check "scale.py predicts a slow link"
has "r[0]['prompt_bound'][0] == 'bandwidth' and r[1]['prompt'] > r[0]['prompt']"
scale predict -m qwen3-235b-a22b -n 64 --link 100 --latency 5
check "scale.py predicts a mixture of experts"
file=$AK_TEST_DATA/models/llama-f32.gguf
scale predict -m "$file" --cli "$cli" -n 2 --split rows --json
check "scale.py predicts a file"
has "len(r) == 1 and r[0]['decode'] > 0 and r[0]['gigabytes'] > 0"
scale predict -m "$file" --cli "$cli" -n 4096
[ $? = 1 ] && grep -q "4096 ranks; llama-f32.gguf has" "$err"
check "scale.py says that there are more ranks than heads"
finish scale
