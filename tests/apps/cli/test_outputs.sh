#!/bin/sh
# What each command of tests/data/outputs.txt prints: all of standard output, then standard error,
# whose lines begin with "! ", then the exit code if it is not 0. $AK_CLI, $AK_TEST_DATA: as in
# test_cli.sh. AKUNU_TEST_WRITE=1 writes that file again instead; read the difference before you
# commit it.
#
# A line "$ ARGUMENT..." is a command of the shell's language after the program's name; "# " begins a
# comment; what is between is the output. Commands run in one folder, one after another: `data` is
# that of the tests. What a clock says is replaced by "TIME".
. "${AK_TEST_SOURCE:?}/tests/apps/cli/checks.sh"
file=$data/outputs.txt
export AKUNU_THREADS=1 XDG_CACHE_HOME="$work/cache"

mkdir "$work/in"
cd "$work/in" || exit 1
ln -s "$data" data
yes 'Once upon a time, the old lighthouse keeper sat by the sea.' | head -n 12 >text
printf 'one\ntwo words\n' >two
printf '[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]' >hi.json
printf '%s\n' \
    '{"question": "a b?", "choices": {"text": ["b", "cd"], "label": ["A", "B"]}, "answerKey": "A"}' \
    '{"activity_label": "X", "ctx_a": "The old", "ctx_b": "man", "endings": ["sat.", "ran off.", "was", "x"], "label": 3}' \
    '{"goal": "a b c ", "sol1": "d", "sol2": "e f", "label": 1}' >tasks

without_times() {
    sed -E "s,$work,WORK,g; s/(may take) [0-9.]+ [kMGT]?B/\1 SIZE/; s/[0-9.]+ (ns|us|ms|s|min|tok\/s|tokens\/s|GB\/s|GiB\/s|times)\b/TIME \1/g; s/(\"[a-z_]*(seconds|_ms|_ts|_per_second|time)\": )[0-9.e+-]+/\1\"TIME\"/g"
}
# run_line ARGUMENTS: runs the program with them, which the shell reads.
run_line() {
    eval "\"\$cli\" $1" >"$out" 2>"$err" </dev/null
    code=$?
    without_times <"$out"
    [ -z "$(tail -c 1 "$out")" ] || echo '\'
    without_times <"$err" | sed 's/^/! /'
    [ $code -eq 0 ] || echo "= $code"
}
grep '^[$#] ' "$file" | while IFS= read -r line; do
    case $line in
    '# '*) printf '\n%s\n' "$line" ;;
    *) printf '%s\n' "$line" && run_line "${line#??}" ;;
    esac
done >"$work/outputs"

if [ "${AKUNU_TEST_WRITE:-}" ]; then
    cp "$work/outputs" "$file"
    exit
fi
diff -a "$file" "$work/outputs" >"$out"
check "the commands print what they did"
[ "$(grep -c '^\$ ' "$file")" -ge 50 ]
check "there are commands"
finish test_outputs
