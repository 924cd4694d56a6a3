#!/bin/sh
# The programs of examples/: what they print for the tests' small model, and that they free all
# memory, also after an error (tests/api/leaks.c ends a program that does not with 99).
# usage: test_examples.sh, in the build folder, with AK_TEST_DATA and AK_TEST_SOURCE
set -u
data=$AK_TEST_DATA
model=$data/model.gguf
build=${AK_TEST_BUILD:-.}
[ -x "$build/examples/simple" ] || exit 77
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
n_failed=0 n=0

# usage: check CODE WORDS-OF-STANDARD-OUTPUT WORDS-OF-STANDARD-ERROR EXAMPLE ARGUMENT...
# Words are a basic regular expression; "" matches anything.
check() {
    code=$1 out=$2 err=$3
    shift 3
    # A command and its arguments.
    # shellcheck disable=SC2086
    (cd "$build" && exec ${AK_EMULATOR:-} ./examples/"$@") <"$work/in" >"$work/out" 2>"$work/err"
    got=$?
    n=$((n + 1))
    if [ "$got" -ne "$code" ] || ! { [ -z "$out" ] || grep -q -- "$out" "$work/out"; } ||
        ! { [ -z "$err" ] || grep -q -- "$err" "$work/err"; }; then
        echo "examples: $*: exit code $got, expected $code with '$out' and '$err':"
        cat "$work/out" "$work/err"
        n_failed=$((n_failed + 1))
    fi
}
: >"$work/in"
long=$(printf '%01200d' 0)

check 0 '' '' simple "$model" "Once upon"
check 0 '' '' simple "$model" ""
check 2 '' 'usage: simple' simple
check 1 '' 'simple: /nowhere' simple /nowhere "Once upon"
check 1 '' 'simple: .*256' simple "$model" "$long"

printf 'Hi "you"\nAnd \\ me\n' >"$work/in"
check 0 '' '\[0 tokens of the conversation kept, [1-9]' chat "$model" "Be brief." 16
check 0 '' '^\[[1-9][0-9]* tokens of the conversation kept, [1-9]' chat "$model" "" 16
echo "$long" >"$work/in"
check 1 '' 'chat: .*256' chat "$model"
printf '\377\n' >"$work/in"
check 1 '' 'chat: ' chat "$model"
: >"$work/in"
check 0 '' '' chat "$model"
check 1 '' 'chat: /nowhere' chat /nowhere
check 2 '' 'usage: chat' chat

check 0 '' '' json "$model" "Ada, 1815"
check 1 '' 'json: /nowhere' json /nowhere "Ada"
check 1 '' 'json: .*256' json "$model" "$long"
check 2 '' 'usage: json' json "$model"

check 0 '^ 1.000  a cat$' '' embed "$model" "a cat" "a kitten"
check 0 '^-\{0,1\} *-\{0,1\}0\.[0-9]\{3\}  a kitten$' '' embed "$model" "a cat" "a kitten"
check 1 '' 'embed: ' embed "$model" "a cat" ""
check 1 '' 'embed: ' embed "$data/models/gemma.gguf" "a cat"
check 1 '' 'embed: /nowhere' embed /nowhere "a cat"
check 2 '' 'usage: embed' embed "$model"

check 0 '^Once upon' '' batch "$model" "Once upon" "The sea" "In the"
check 0 '^The sea' '' batch "$model" "Once upon" "The sea" "In the"
check 1 '' 'batch: ' batch "$model" "Once upon" ""
check 1 '' 'batch: .*256' batch "$model" "$long"
check 1 '' 'batch: /nowhere' batch /nowhere "Once upon"
check 2 '' 'usage: batch' batch "$model"

check 0 '^Once upon' '' schedule "$model" "Once upon" "The sea" "In the"
check 0 '^The sea' '' schedule "$model" "Once upon" "The sea" "In the"
check 1 '' 'schedule: .*no tokens' schedule "$model" "Once upon" ""
check 1 '' 'schedule: .*256' schedule "$model" "$long"
check 1 '' 'schedule: /nowhere' schedule /nowhere "Once upon"
check 2 '' 'usage: schedule' schedule "$model"

check 0 '"role": *"assistant"' '' tools "$model" "Add 1 and 2."
check 0 '^call add' '' tools "$model" "Add 1 and 2." add
check 1 '' 'tools: ' tools "$model" "Add 1 and 2." subtract
check 1 '' 'tools: .*256' tools "$model" "$long"
check 1 '' 'tools: /nowhere' tools /nowhere "Add 1 and 2."
check 2 '' 'usage: tools' tools

# A second of silence as WAV, in which the model of random weights hears something.
{
    printf 'RIFF\044\175\000\000WAVEfmt \020\000\000\000\001\000\001\000\200\076\000\000\000\175\000\000\002\000\020\000data\000\175\000\000'
    head -c 32000 /dev/zero
} >"$work/silence.wav"
# shellcheck disable=SC2086
(cd "$build" && exec ${AK_EMULATOR:-} ./tests/speech/transcribe/test_transcribe --write "$work/whisper.bin")
(cd "$build" && exec ${AK_EMULATOR:-} ./examples/transcribe "$work/whisper.bin" "$work/silence.wav") >"$work/out" 2>&1
if grep -q 'built without' "$work/out"; then
    echo "SKIPPED: examples: transcribe, which needs libsndfile and libsamplerate"
else
    check 0 '^1.0 s of en$' '' transcribe "$work/whisper.bin" "$work/silence.wav"
    check 0 '^\[ *[0-9.]* to *[0-9.]*\]' '' transcribe "$work/whisper.bin" "$work/silence.wav"
    check 1 '' 'transcribe: .*nowhere.wav' transcribe "$work/whisper.bin" /nowhere.wav
    check 1 '' 'transcribe: ' transcribe "$model" "$work/silence.wav"
fi
check 1 '' 'transcribe: /nowhere' transcribe /nowhere "$work/silence.wav"
check 2 '' 'usage: transcribe' transcribe

# The program that README.md shows is the one that is tested.
n=$((n + 1))
if ! awk '/^```/ { shows = /^```c$/; next } shows' "$AK_TEST_SOURCE/README.md" | diff - "$AK_TEST_SOURCE/examples/simple.c"; then
    echo "examples: the C program in README.md is not examples/simple.c"
    n_failed=$((n_failed + 1))
fi

echo "examples: $n checks, $n_failed failed"
[ "$n_failed" -eq 0 ]
