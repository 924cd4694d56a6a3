#!/bin/sh
# Forty command lines from the documentation of llama.cpp and ollama, word for word: only the name
# of the program leads to akunu-cli, as docs/coming-from.md tells, and their model names lead to a
# tiny model. They do what their authors meant, or say why not; then flags and commands that
# have no counterpart.
# $AK_CLI, $AK_TEST_DATA, $AK_TEST_SOURCE: as in test_cli.sh. AKUNU_TEST_DOCS=0: skipped.
[ "${AKUNU_TEST_DOCS:-}" != 0 ] || { echo "SKIPPED: AKUNU_TEST_DOCS=0"; exit 77; }
. "${AK_TEST_SOURCE:?}/tests/apps/cli/checks.sh"

# ---- The programs, the models and the files that the command lines name ----
# program NAME ARGUMENT...
program() {
    name=$work/bin/$1
    shift
    printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$cli" "$*" >"$name"
    chmod +x "$name"
}
mkdir "$work/bin"
program llama-cli run
program llama-completion run
program llama-simple-chat run
program llama-simple run --raw
program llama-batched run --raw
program llama-speculative-simple run --raw
program llama-embedding embed
program llama-perplexity perplexity
program llama-bench bench
program convert_hf_to_gguf.py convert
program ollama
# As docs/coming-from.md has it for encoders.
mkdir "$work/embeds"
printf '#!/bin/sh\nshift\nexec "%s" embed --json -m "$@"\n' "$cli" >"$work/embeds/ollama"
chmod +x "$work/embeds/ollama"
models=$work/data/akunu/models
mkdir -p "$models" "$work/here" && cd "$work/here" || exit 1
mkdir -p models/7B models/13B models/llama-7b-v2 path/to grammars wikitext-2-raw
for name in model.gguf PATH_TO_MODEL '[PATH TO MODEL]' path_to_model path/to/model.gguf finetuned-model.gguf draft.gguf \
    Meta-Llama-3.1-8B-Instruct.gguf llama-3.Q4_K_M.gguf models/gemma-1.1-7b-it.Q4_K_M.gguf models/7B/ggml-model-q4_0.gguf \
    models/13B/ggml-model-q4_0.gguf models/llama-7b-v2/ggml-model-f16.gguf "$models/llama3.2.gguf" "$models/gemma4.gguf" \
    "$models/deepseek-r1.gguf" "$models/gpt-oss.gguf" \
    "$models/embeddinggemma.gguf" "$models/nomic-embed-text.gguf" path/to/model; do
    ln -s "$data/model.gguf" "$name"
done
ln -s "$data/sentence" folder
printf 'root ::= object\nobject ::= "{" (pair ("," pair)*)? "}"\npair ::= string ":" value\nstring ::= "\\"" [a-z]{0,8} "\\""\nvalue ::= string | object | [0-9]{1,5}\n' \
    >grammars/json.gbnf
printf 'root ::= [a-z]{1,20}\n' >grammars/some-grammar.gbnf
i=0
while [ $i -lt 80 ]; do
    echo "The keeper of the lighthouse climbed the stairs once more, for the $i. time."
    i=$((i + 1))
done >file.txt
cp file.txt wikitext-2-raw/wiki.test.raw
printf 'Lighthouses are towers with lights.\n' >README.md

# ---- What is said of each ----
n_done=0 n_lacking=0
# What the command lines leave open, so that they end soon: the length of a text, the repetitions
# of a measurement.
export AKUNU_N_PREDICT=24 AKUNU_REPETITIONS=1 AKUNU_SEED=1
typed=/dev/null
programs=$work/bin
try() { PATH=$programs:$PATH sh -c "$1" >"$out" 2>"$err" <"$typed"; }
# does COMMAND [PATTERN...]: exits with 0, standard output has each pattern, or at least something.
does() {
    try "$1"
    check "exit code 0: $1"
    n_done=$((n_done + 1))
    line=$1
    shift
    [ -s "$out" ]
    check "it has a result: $line"
    for pattern; do
        grep -qE -e "$pattern" "$out"
        check "'$pattern' in the result of: $line"
    done
}
# chats COMMAND: the same on a terminal: it answers what is typed.
printf 'Hello\n/exit\n' >"$work/typed"
chats() {
    typed=$work/typed
    export AKUNU_CONVERSATION=1
    does "$1"
    unset AKUNU_CONVERSATION
    typed=/dev/null
}
# opens COMMAND: the same of a chat in which nothing is said, as its answers have no end.
printf '/exit\n' >"$work/left"
opens() {
    AKUNU_CONVERSATION=1 typed=$work/left
    export AKUNU_CONVERSATION
    try "$1"
    check "exit code 0: $1"
    n_done=$((n_done + 1))
    unset AKUNU_CONVERSATION
    typed=/dev/null
}
# lacks COMMAND TEXT: a usage error that says why.
lacks() {
    try "$1"
    [ $? -eq 2 ] && grep -qF -e "$2" "$err" && [ "$(wc -l <"$err")" -eq 1 ]
    check "one line with '$2': $1"
    n_lacking=$((n_lacking + 1))
}

# ---- llama.cpp: README.md ----
chats 'llama-cli -m model.gguf'
chats 'llama-cli -m model.gguf -cnv --chat-template chatml'
lacks "llama-cli -m model.gguf -cnv --in-prefix 'User: ' --reverse-prompt 'User:'" 'the chat template formats messages'
does 'llama-cli -m model.gguf -p "I believe the meaning of life is" -n 128 -no-cnv' '^I believe the meaning of life is.+'
does "llama-cli -m model.gguf -n 256 --grammar-file grammars/json.gbnf -p 'Request: schedule a call at 8pm; Command:'" '^\{'
does 'llama-perplexity -m model.gguf -f file.txt' '^perplexity: [0-9.]+ ± '
does 'llama-bench -m model.gguf' 'pp512' 'tg128'

# ---- llama.cpp: tools/completion/README.md ----
does 'llama-completion -m models/gemma-1.1-7b-it.Q4_K_M.gguf -no-cnv --prompt "Once upon a time"' '^Once upon a time.+'
chats 'llama-completion -m models/gemma-1.1-7b-it.Q4_K_M.gguf --chat-template gemma'
chats 'llama-completion -m models/gemma-1.1-7b-it.Q4_K_M.gguf --jinja'
does 'llama-completion -m models/gemma-1.1-7b-it.Q4_K_M.gguf --jinja --single-turn -sys "You are a helpful assistant" -p "Hello"'
opens 'llama-completion -m models/gemma-1.1-7b-it.Q4_K_M.gguf --ignore-eos -n -1'

# ---- llama.cpp: its pages on building, backends, several GPUs and speed ----
does 'llama-cli -m "PATH_TO_MODEL" -p "Hi you how are you" -ngl 99'
does 'llama-cli -m PATH_TO_MODEL -p "Building a website can be done in 10 steps:" -n 50'
does 'llama-cli -m path_to_model -p "Building a website can be done in 10 simple steps:" -n 400 -e -ngl 33 -sm none -mg 0'
opens 'llama-cli -m "[PATH TO MODEL]" -ngl 100 -c 16384 -t 10 -n -2 -cnv'
does 'llama-cli --list-devices'
chats 'llama-cli -m model.gguf -sm tensor -ctk f16 -ctv f16'
chats 'llama-cli -m model.gguf -ts 3,1'
does 'llama-cli -m "path/to/model.gguf" -ngl 200000 -p "Please sir, may I have some "'

# ---- llama.cpp: grammars/README.md ----
does "llama-cli -m model.gguf --grammar-file grammars/some-grammar.gbnf -p 'Some prompt'" '^[a-z]+$'
does "llama-cli -m model.gguf -j '{ \"type\": \"array\", \"items\": { \"type\": \"object\", \"properties\": {
    \"name\": { \"type\": \"string\", \"minLength\": 1, \"maxLength\": 100 }, \"age\": { \"type\": \"integer\", \"minimum\": 0, \"maximum\": 150 } },
    \"required\": [\"name\", \"age\"], \"additionalProperties\": false }, \"minItems\": 10, \"maxItems\": 100 }' \
    -p 'Generate a {name, age}[] JSON array with famous actors of all ages.'" '^\['

# ---- llama.cpp: the READMEs of examples and tools ----
does 'llama-simple -m ./models/llama-7b-v2/ggml-model-f16.gguf "Hello my name is"' '^Hello my name is.+'
chats 'llama-simple-chat -m Meta-Llama-3.1-8B-Instruct.gguf -c 2048'
does 'llama-batched -m ./models/llama-7b-v2/ggml-model-f16.gguf -p "Hello my name is" -np 4 --kv-unified'
does 'llama-embedding -m ./path/to/model --pooling mean --log-disable -p "Hello World!" 2>/dev/null' '^-?[0-9.e-]+( -?[0-9.e-]+)+$'
does "llama-embedding -p 'Castle<#sep#>Stronghold<#sep#>Dog<#sep#>Cat' --pooling mean --embd-separator '<#sep#>' --embd-normalize 2  --embd-output-format '' -m './path/to/model' --n-gpu-layers 99 --log-disable 2>/dev/null"
[ "$(wc -l <"$out")" -eq 4 ]
check "four texts, four embeddings"
does 'llama-speculative-simple -m model.gguf -md draft.gguf -p "Here is a quick sort implementation in C++. Just code, no comments:\n\n#include" --spec-type draft-simple --spec-draft-n-max 7 -ngld 99 --color on -n 256 --temp 0 --top-k 1 --seed 42 -ngl 99 -lv 4' \
    '^#include'
does 'llama-perplexity --file wikitext-2-raw/wiki.test.raw -ngl 999 --model finetuned-model.gguf' '^perplexity: '
does 'llama-bench -m models/7B/ggml-model-q4_0.gguf -m models/13B/ggml-model-q4_0.gguf -p 0 -n 128,256,512' 'tg128' 'tg256' 'tg512'
does 'llama-bench -m model.gguf -n 0 -p 1024 -b 128,256,512,1024' '\| 128 \| pp1024' '\| 1024 \| pp1024'
does 'llama-bench -m model.gguf -n 0 -n 16 -p 64 -t 1,2,4,8,16,32' '\| 1 \|.* pp64' '\| 2 \|.* tg16'
does 'llama-bench -m model.gguf -d 0,512' 'pp512 ' 'pp512@d512'
does 'llama-bench -m model.gguf -o jsonl' '^\{.*"n_gen": 128.*\}$'
does 'convert_hf_to_gguf.py --outfile model-f16.gguf --outtype f16 folder && cat model-f16.gguf' 'GGUF'
lacks 'llama-cli -m ./llama-3.Q4_K_M.gguf -p "<|start_header_id|>user<|end_header_id|>\n\nSing a song<|im_end|><|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n" --special --control-vector-scaled ./control_vector.gguf 0.8 --control-vector-layer-range 10 31' \
    'control vectors are not supported'

# ---- ollama: README.md, docs/cli.mdx, docs/capabilities ----
chats 'ollama run gemma4'
does 'ollama run llama3.2 "Summarize this file: $(cat README.md)"'
programs=$work/embeds
does 'ollama run embeddinggemma "Hello world"' '^\{"embedding": \['
does 'echo "Hello world" | ollama run nomic-embed-text' '^\[\{"embedding": \['
programs=$work/bin
does 'ollama ls' '^llama3.2 '
does 'ollama show llama3.2' 'architecture'
does 'ollama run deepseek-r1 --think "Where should I visit in Lisbon?"'
does 'ollama run deepseek-r1 --think=false "Summarize this article"'
does 'ollama run deepseek-r1 --hidethinking "Is 9.9 bigger or 9.11?"'
does 'ollama run gpt-oss --think=low "Draft a headline"'
lacks 'ollama pull gemma4' "$([ -n "${AK_DOWNLOADS:-}" ] && echo 'expected USER/REPO' || echo 'downloads nothing')"

echo "$n_done do what was meant, $n_lacking say why not"
[ $((n_done + n_lacking)) -ge 40 ] && [ $((n_lacking * 10)) -le $((n_done + n_lacking)) ]
check "of 40 command lines 36 do what was meant"

# ---- Without a counterpart ----
for command in serve ps 'stop llama3.2' 'create my-model' 'cp llama3.2 my-model' 'rm gemma4' 'push myuser/mymodel' signin; do
    lacks "ollama $command" "'${command%% *}': "
done
lacks 'ollama show --modelfile llama3.2' '--modelfile: there are no Modelfiles'
lacks 'ollama run llama3.2 --format json "Hello"' '--format: -j SCHEMA'
lacks 'llama-cli --completion-bash' "'akunu-cli completion bash' prints it"
lacks 'llama-cli -m model.gguf --mmproj mmproj.gguf --image a.png -p "What is it?"' '--mmproj: images and audio are not supported'
lacks 'llama-perplexity -m model.gguf -f file.txt --hellaswag' "'akunu-cli eval --tasks FILE.jsonl' asks questions"
lacks 'llama-perplexity -m model.gguf --kl-divergence-base base.kld --kl-divergence' '--save-logits FILE writes it'
lacks 'llama-bench -m model.gguf -o sql' 'expected one of md, csv, json, jsonl'
lacks 'llama-bench -m model.gguf -ngl 10,20,30,31,32,33,34,35' 'expected a whole number'

# ---- What the flags above do ----
try 'llama-embedding -m ./path/to/model -p "a<#>b" -p c --embd-separator "<#>" --embd-normalize -1 --json'
[ "$(grep -c embedding "$out")" -eq 3 ]
check "a separator, and a text of its own"
cp "$out" "$work/three"
printf 'a\nb\nc\n' >lines
try 'llama-embedding -m ./path/to/model -f lines --no-normalize --embd-separator "\n" --json'
cmp -s "$out" "$work/three"
check "-1 is --no-normalize, and \\n an escape"
printf 'A{%% if enable_thinking is defined %%}{{ "bcdfghjk" if enable_thinking else "bcdf" }}{%% endif %%}{{ reasoning_effort }}' >asks.jinja
ask="llama-cli -m model.gguf --chat-template-file asks.jinja -p A -n 1 --json"
# prompt_of FLAGS: how many tokens its prompt has.
prompt_of() {
    try "$ask $1" || return 1
    grep -o '"n_prompt": [0-9]*' "$out" | grep -o '[0-9]*'
}
none=$(prompt_of "") off=$(prompt_of "--reasoning off") on=$(prompt_of -rea) low=$(prompt_of "--think low")
given=$(prompt_of "--think --kwargs '{\"enable_thinking\": false}'")
[ "$none" -lt "$low" ] && [ "$none" -lt "$off" ] && [ "$off" -lt "$on" ] && [ "$given" -eq "$off" ]
check "--reasoning sets the template's variables ($none $low $on $off $given), and --kwargs wins"
lacks 'llama-cli -m model.gguf --raw -p x --reasoning off' '--reasoning has no effect'
try 'llama-cli -m model.gguf -p x -n 1 --reasoning off'
says "the chat template has no variable for it"

finish peers
