#!/bin/sh
# Flags as people who know llama.cpp and ollama type them: modes, escapes, arguments without a
# flag, every spelling in the environment, and flags that ask for what is so anyway.
# $AK_CLI, $AK_TEST_DATA, $AK_TEST_SOURCE: as in test_cli.sh.
. "${AK_TEST_SOURCE:?}/tests/apps/cli/checks.sh"
mkdir -p "$work/data/akunu/models"
model=$data/model.gguf                # with a chat template
plain=$work/plain.gguf # without one
LC_ALL=C sed 's/tokenizer.chat_template/tokenizer.chat_templatX/' "$model" >"$plain"
short="-n 4 --temp 0"

# is_same NAME: standard output is that of the file $work/NAME, kept by `keep NAME`.
keep() { cp "$out" "$work/$1"; }
is_same() {
    cmp -s "$out" "$work/$1"
    check "$2"
}

# ---- A prompt alone: answered by the chat template ----
# shellcheck disable=SC2086
{
    exits 0 run -m "$model" -p "once upon" $short
    says "answered by the chat template; --raw"
    keep answer
    printf '[{"role": "user", "content": "once upon"}]' >"$work/talk.json"
    exits 0 apply-template -m "$model" --messages "$work/talk.json"
    keep prompt
    exits 0 run --raw -m "$model" -f "$work/prompt" --no-bos --no-display-prompt $short --json
    keep raw.json
    exits 0 run -m "$model" -p "once upon" $short --json
    keep answer.json
    for end in '\r' '\n\r\n' '\r\n\r\n'; do
        printf "once upon$end" >"$work/asked"
        exits 0 run -m "$model" -f "$work/asked" -n 1 --json
        ! grep -qF "$(grep -o '"n_prompt": [0-9]*' "$work/answer.json")" "$out"
        check "other carriage returns and newlines stay: $end"
    done
    exits 0 run -m "$model" -p "once upon" $short -st
    is_same answer "--single-turn is one answer"
    printf 'once upon\n' >"$work/asked"
    exits 0 run -m "$model" -f "$work/asked" $short
    is_same answer "the final newline of a file is not part of the prompt"
    "$cli" run -m "$model" $short <"$work/asked" >"$out" 2>"$err"
    is_same answer "nor is that of a pipe"
    printf 'once upon\r\n' >"$work/asked"
    exits 0 run -m "$model" -f "$work/asked" $short
    is_same answer "nor one with a carriage return, as Windows writes it"
    "$cli" run -m "$model" $short <"$work/asked" >"$out" 2>"$err"
    is_same answer "nor that of a pipe"
    exits 0 run -m "$model" -p "once upon" $short -no-cnv --no-display-prompt
    keep raw
    exits 0 run -m "$model" -p "once upon" $short --raw --no-display-prompt
    is_same raw "--raw is -no-cnv"
    ! grep -q "chat template" "$err"
    check "nothing is said of a template that is not used"
    exits 0 run -m "$plain" -p "once upon" $short
    ! grep -q "chat template" "$err"
    check "a model without a template continues the text"
    prints "once upon"
    exits 0 run -m "$plain" -p "once upon" -sys "Be brief." $short
    says "ChatML"
    exits 0 run -m "$model" -p "once upon" $short -np 2 --json
    [ "$(grep -o '"seed"' "$out" | wc -l)" -eq 2 ]
    check "two answers"
    exits 0 run -m "$model" -p "once upon" $short -sys "Be brief." --json
    ! grep -qF "$(grep -o '"n_prompt": [0-9]*' "$work/answer.json")" "$out"
    check "a system message is part of the prompt"
    exits 0 run -m "$model" -p "once upon" $short -sys "Be brief.
Be kind."
    keep system
    printf 'Be brief.\nBe kind.\r\n' >"$work/system.txt"
    exits 0 run -m "$model" -p "once upon" $short -sysf "$work/system.txt"
    is_same system "the final newline of a file with a system message is dropped"
    printf 'once\n/stats\nupon\n' | "$cli" run -cnv -m "$model" $short >"$work/chat" 2>"$err"
    printf 'once\r\n/stats\r\nupon\r\n' | "$cli" run -cnv -m "$model" $short >"$out" 2>"$err"
    is_same chat "lines of a piped chat may end in a carriage return and a newline"
    ! grep -q "unknown command" "$err"
    check "so may its commands"
}

# ---- A flag without effect ----
# shellcheck disable=SC2086
for flag in "-sys x" "--system-prompt x" "--chat-template chatml" "--kwargs {}" "-st"; do
    exits 2 run --raw -m "$model" -p x $flag
    says "${flag%% *} has no effect on a text that is continued as it is; it is for a chat (-cnv) or an answer"
done
# shellcheck disable=SC2086
for flag in "-np 2" "--prompt-cache $work/f" "--logprobs 1" "--no-bos" "--json"; do
    exits 2 run -cnv -m "$model" $flag
    says "${flag%% *} has no effect in a chat; it is for "
done
exits 2 run -m "$model" -p x --no-bos
says "it is for a text that is continued as it is (--raw)"
exits 2 cache list --all
says "it is for 'cache prune'"
exits 2 bench --profile-out=x -m "$model"
says "--profile-out has no effect without --tune"
exits_with AKUNU_SYSTEM_PROMPT=x 0 run --raw -m "$model" -p x -n 1
exits 2 run -cnv --raw -m "$model"
says "only one of them"

# ---- Escapes ----
exits 0 run --raw -m "$model" -p 'a\tb\x41\q\\n' -n 0
printf 'a\tbA\\q\\n' | cmp -s - "$out"
check "escapes in -p"
exits 0 run --raw -m "$model" -p 'a\tb' -n 0 --no-escape
printf 'a\\tb' | cmp -s - "$out"
check "--no-escape keeps backslashes"
exits 0 run --raw -m "$model" -p 'a\tb' -n 0 -e
printf 'a\tb' | cmp -s - "$out"
check "-e is the default"
exits 2 run -m "$model" -p x -e --no-escape
says "only one of them"
printf 'a\\tb' >"$work/file"
exits 0 run --raw -m "$model" -f "$work/file" -n 0
cmp -s "$out" "$work/file"
check "a file's backslashes stay"

# ---- Every spelling, in the environment and in YAML ----
exits_with AKUNU_TEMPERATURE=x 2 run -m "$model" -p x
says "AKUNU_TEMPERATURE=x"
exits_with AKUNU_N_PREDICT=x 2 run -m "$model" -p x
says "AKUNU_N_PREDICT=x"
exits_with AKUNU_CTK=x 2 run -m "$model" -p x
says "AKUNU_CTK=x"
exits_with AKUNU_TEMPRATURE=1 0 tokenize -m "$model" -p x
says "AKUNU_TEMPRATURE in the environment is not known; did you mean AKUNU_TEMPERATURE?"
exits_with AKUNU_TEST_ROWS=1 0 tokenize -m "$model" -p x
says_nothing
printf 'temperature: x\n' >"$work/c.yaml"
exits 2 run --config "$work/c.yaml" -m "$model" -p x
says "temp"
printf 'ctk: x\n' >"$work/c.yaml"
exits 2 run --config "$work/c.yaml" -m "$model" -p x
says "c.yaml:1"
printf 'temp: 1\ntemperature: 1\n' >"$work/c.yaml"
exits 2 run --config "$work/c.yaml" -m "$model" -p x
says "is given twice"

# ---- Arguments without a flag ----
exits 0 tokenize -m "$model" --ids -p "-b --ids"
keep ids
exits 0 tokenize -m "$model" --ids -- "-b --ids"
is_same ids "-- ends the flags"
exits 0 -m "$model" --ids tokenize -- "-b --ids"
is_same ids "-- after a command that flags precede"
exits 2 tokenize -m "$model" -- --ids x
says "unexpected argument"
for command in quantize run; do
    exits 2 $command one two three
    says "unexpected argument 'three': '$command' takes --model and --"
done
exits 3 inspect -- -none.gguf
says "-none.gguf"
exits 0 run -m "$model" -n 1 --raw -- --help
exits 0 cache list --
: >./-dash.gguf
exits 2 inspect -dash.gguf
says "before a file of that name write --"
exits 3 inspect -- -dash.gguf
says "-dash.gguf"
rm ./-dash.gguf
exits 0 tokenize -m "$model" --ids -p "a b"
keep ids
exits 0 tokenize "$model" "a b" --ids
is_same ids "tokenize MODEL TEXT"
exits 0 tokenize -m "$model" --ids "a b"
is_same ids "tokenize TEXT"
exits 0 --ids -m "$model" tokenize "a b"
is_same ids "flags before the command"
exits 0 inspect "$model"
prints token_embd.weight
exits 0 detokenize -m "$model" "$(cat "$work/ids")"
# shellcheck disable=SC2086
{
    exits 0 run "$model" "once upon" $short
    is_same answer "run MODEL PROMPT"
    exits 0 run -m "$model" "once upon" $short
    is_same answer "run PROMPT"
    exits 0 "$model" "once upon" $short
    is_same answer "MODEL PROMPT"
    cp "$model" "$work/data/akunu/models/tiny.gguf"
    exits 0 tiny "once upon" $short
    is_same answer "the name of a model"
    exits 0 run "once upon" $short
    is_same answer "a prompt has spaces"
    printf '/exit\n' | "$cli" -cnv tiny >"$out" 2>"$err"
    check "a model alone chats"
}
exits 2 run -m "$model" "a b" "c d"
says "-m is given already"
exits 2 run -p x "$model" y
says "-p is given already"
exits 2 models x
says "takes flags only"
exits 3 run absent.gguf -p x
says "absent.gguf"
exits 2 tokenise x
says "did you mean 'tokenize'"
exits 2 run --ctx 5
says "did you mean --ctx-size?"

# ---- list, show, and parts of names ----
exits 0 list
prints "tiny "
awk 'NR == 2 && NF < 5 { exit 1 }' "$out"
check "size, type and context"
exits 0 list --json
prints '"name": "tiny"'
exits 0 tokenize -m TIN --ids "a b"
is_same ids "a part of a name"
cp "$model" "$work/data/akunu/models/other-tiny.gguf"
exits 2 tokenize -m tin --ids "a b"
says "-m tin: which one? "
says "other-tiny.gguf, tiny.gguf"
exits 0 tokenize -m tiny --ids "a b"
printf 'GGUF' >"$work/data/akunu/models/broken.gguf"
exits 0 list
prints "broken: "
rm "$work/data/akunu/models/other-tiny.gguf" "$work/data/akunu/models/broken.gguf"
exits 0 show tiny
prints "chat template"
prints "architecture   "
exits 0 show -m tiny --json
prints '"chat_template": "'
exits 0 list --cache-dir "$work/none"
XDG_DATA_HOME=$work/nowhere
exits 0 list
prints "no models in $work/nowhere/akunu/models"
XDG_DATA_HOME=$work/data

# ---- What is so anyway ----
usual="-fa -tb 2 -ub 64 --no-warmup --jinja --simple-io --no-perf --log-disable -ngl 99 -dev none -t -1 --color --no-mmap --keep -1 --no-context-shift"
# shellcheck disable=SC2086
exits 0 run -m "$model" -p "once upon" $short $usual
is_same answer "flags that ask for what is so anyway"
[ "$(wc -l <"$err")" -le 8 ]
check "at most one line each"
for value in on off auto 1; do
    exits 0 run -m "$model" -p "once upon" -n 4 --temp 0 -fa $value
    is_same answer "-fa $value"
done
exits 0 run -m "$model" -p x -n -2 -c 16 --temp 0 --json
exits 0 run -m "$model" -p x -n 1 --mlock
exits 2 run -m "$model" -p x --context-shift
says "if it is full, the text ends"
[ -z "${AK_DOWNLOADS:-}" ] || {
    exits 3 run -hf ggml-org/gemma-3-1b-it-GGUF --offline -p x
    says "downloads nothing"
}
exits 2 run --hf-file model.gguf -p x
says "-hf USER/REPO"

# ---- Messages ----
(
    unset XDG_DATA_HOME HOME
    exec "$cli" run -p x
) >"$out" 2>"$err" </dev/null
[ $? -eq 2 ]
check "no HOME"
says "~/.local/share/akunu/models (HOME is not set)"
ln -s loop.gguf "$work/loop.gguf"
exits 3 inspect -m "$work/loop.gguf"
says "a loop of symbolic links"
(cd "$work" && exec "$cli" inspect -m loop.gguf) >"$out" 2>"$err"
says "a loop of symbolic links"
exits 2 run -m "$model" -p x --repeat-penalty 0
says "expected a number above 0, up to 1000"
exits 2 run -m "$model" -f "$work/none"
says "cannot read -f $work/none"
exits 0 run -m "$model" -p x -n 1 --temp 0
! grep -q " 0.0 tok/s" "$err"
check "one token has no speed"
exits 4 run -m "$model" -p x -c 2000000000
says " GB)"
for command in "" $("$cli" --help | sed -n '/^Commands/,/^$/s/^  \([a-z-]*\) .*/\1/p'); do
    # shellcheck disable=SC2086
    exits 0 $command --help
    awk '{ n = gsub(/[^\200-\277]/, ""); if (n > 100) exit 1 }' "$out"
    check "lines of '$command --help' have at most 100 columns"
done

finish test_flags
