#!/bin/sh
# akunu-cli as scripts and people use it (the exact forms,
# streams, exit codes and environment of the command line).
# $AK_CLI: the program. $AK_TEST_DATA: holds model.gguf, a tiny model with a
# byte-level vocabulary, and models/llama-f32.gguf, one that wants BOS.
# $AK_TEST_MODELS: where fetched models lie. AKUNU_TEST_FULL=1: more of the same kinds.
. "${AK_TEST_SOURCE:?}/tests/apps/cli/checks.sh"
model=$data/model.gguf
bos_model=$data/models/llama-f32.gguf bos=411
real=${AK_TEST_MODELS:-/nonexistent}/SmolLM2-135M-Instruct.Q4_1.gguf

export XDG_DATA_HOME="$work/empty"

# ---- Usage ----
exits 0 --help
test "$(grep '^[A-Z]' "$out" | tr '\n' ' ')" = "Usage Commands Examples More "
check "--help has four headings"
commands=$(sed -n 's/^COMMAND([A-Z_]*, [a-z_]*, "\([a-z-]*\)".*/\1/p' "$AK_TEST_SOURCE/src/apps/common/commands.def")
for command in $commands; do
    exits 0 --help
    prints "  $command"
    exits 0 $command --help
    prints "akunu-cli $command"
    prints "Example"
    says_nothing
done
exits 0 --version
prints_row 'build: .*, kernels: .*; jansson [0-9].*'
prints "akunu-cli "
prints scalar

exits 2 tokenise
says "did you mean 'tokenize'"
exits 2 translate -m "$model"
says "run, chat, infill, tokenize, detokenize, inspect, logits, transcribe, perplexity, eval, report, verify, embed, convert, quantize, imatrix, advise, compress, apply-template, grammar-check, bench"
exits 2 run --promt x
says "--promt"
says "did you mean --prompt"
exits 2 run --chunks 3
says "perplexity"
exits 2 run a b stray
says "stray"
exits 2 run --temp
says "--temp needs a value"
prints_nothing
for bad in "-t 0" "-t two" "-t 1.5" "-n -3" "-b 0" "-c -1" "--temp nan" "--temp 0x1" "--top-p 1.5" "-s 1e3" "-ctk q3" "-ctv q6_k" "--kv-keep 255" "--kv-choice most" "--cpu pdp11"; do
    # Two words.
    # shellcheck disable=SC2086
    exits 2 run --raw -m "$model" -p x $bad
    says "$bad"
done
exits 2 bench -m "$model" -o xml
says "-o xml"
exits 2 bench -m "$model" -p 1,,2
says "-p 1,,2"
exits 2 bench -m "$model" -p 0 -n 0
exits 2 run --raw -m "$model" -p x -f y
says "-p and -f"
exits 2 logits -m "$model" --ids "1 2 3"
says "--out"
exits 2 logits -m "$model" --ids "1 two" --out "$work/l.npy"
says "two"
exits 2 logits -m "$model" --ids "1 99999999" --out "$work/l.npy"
says "99999999"
exits 2 detokenize -m "$model" --ids "1 99999999"
says "99999999"
exits 2 tokenize -m "$model" --override-kv tokenizer.ggml.pre --ids -p x
says "KEY=TYPE:VALUE"
exits 3 tokenize -m "$model" --override-kv tokenizer.ggml.model=str:none --ids -p x
exits 0 tokenize -m "$model" --override-kv tokenizer.ggml.add_bos_token=bool:true --ids -p x
exits 2 run --raw -m "$model"
says "prompt"

# A long prompt of which the KV cache keeps a part.
yes "abc def gh" | head -n 200 >"$work/long"
exits 0 run --raw -m "$model" -f "$work/long" -c 3072 --kv-keep 256 -n 4 --temp 0 -v --no-display-prompt
says " pages of 64 tokens stay"
says "prompt cache: this prompt is not kept"
exits 2 run --raw -m "$model" -p x --kv-choice recent
says "kv_choice has no effect without kv_keep"
exits 2 logits -m "$model" --ids "1 2 3" --out "$work/l.npy" --kv-keep 256
says "--kv-keep is a flag of 'run'"

# ---- Models ----
exits 2 run -p x
says "-m"
exits 3 run --raw -m "$work/absent.gguf" -p x
says "absent.gguf"
exits 3 run --raw -m nowhere -p x
says "nowhere"
exits 3 run --raw -m "$work" -p x
exits 3 run --raw -m /dev/null -p x
mkfifo "$work/pipe"
exits 3 run --raw -m "$work/pipe" -p x
printf 'GGUF' >"$work/short.gguf"
for command in inspect tokenize; do
    exits 3 $command -m "$work/short.gguf"
    says "short.gguf"
    prints_nothing
done
mkdir -p "$work/home/akunu/models"
cp "$model" "$work/home/akunu/models/one.gguf"
XDG_DATA_HOME=$work/home
exits 0 tokenize --ids -p x
exits 0 tokenize -m one --ids -p x
exits 0 tokenize -m one.gguf --ids -p x
exits 3 tokenize -m two --ids -p x
cp "$model" "$work/home/akunu/models/two.gguf"
exits 2 tokenize --ids -p x
says "-m"
cp "$model" "$work/home/akunu/models/SmolLM2-135M-Instruct.Q4_1.gguf"
exits 0 tokenize --ids -p x
XDG_DATA_HOME=$work/empty

# ---- Environment: AKUNU_<FLAG>, and the flag wins ----
exits_with AKUNU_MODEL="$model" 0 tokenize --ids -p x
exits_with AKUNU_THREADS=two 2 run --raw -m "$model" -p x -n 1
says "AKUNU_THREADS=two"
exits_with AKUNU_THREADS=two 0 run --raw -m "$model" -p x -n 1 -t 1
exits_with AKUNU_IDS=1 0 tokenize -m "$model" -p a
prints_line '[0-9 ]+'
exits_with AKUNU_JSON=perhaps 2 inspect -m "$model"
says "AKUNU_JSON=perhaps"
printf 'bb' >"$work/text"
exits_with AKUNU_PROMPT=a 0 tokenize -m "$model" --no-bos --ids -f "$work/text"
cp "$out" "$work/from_flag"
exits 0 tokenize -m "$model" --no-bos --ids -p bb
cmp -s "$out" "$work/from_flag"
check "a flag wins over the environment"

# ---- tokenize, detokenize ----
printf 'Hello\000 w\377rld\303' >"$work/bytes"
exits 0 tokenize -m "$model" --no-bos --ids -f "$work/bytes"
prints_line '[0-9]+( [0-9]+)*'
says_nothing
exits 0 detokenize -m "$model" --ids "$(cat "$out")"
cmp -s "$out" "$work/bytes"
check "tokens give back the bytes, NUL and malformed UTF-8 included"
exits 0 tokenize -m "$model" --no-bos --ids -p ""
prints_line ''
printf 'piped' | "$cli" tokenize -m "$model" --no-bos --ids >"$out" 2>"$err"
check "tokenize of a pipe"
cp "$out" "$work/piped"
exits 0 tokenize -m "$model" --no-bos --ids -p piped
cmp -s "$out" "$work/piped"
check "a pipe is the text"
exits 0 tokenize -m "$bos_model" --ids -p a
prints_line "$bos( [0-9]+)+"
cp "$out" "$work/with_bos"
exits 0 tokenize -m "$bos_model" --no-bos --ids -p a
sed "s/^/$bos /" "$out" | cmp -s - "$work/with_bos"
check "--no-bos leaves BOS out"
exits 0 tokenize -m "$model" --no-bos --json -p "a b"
prints '[{"id": '
"$cli" detokenize -m "$model" <"$work/piped" >"$out" 2>"$err"
check "detokenize of a pipe"
[ "$(cat "$out")" = piped ]
check "ids from a pipe"
exits 2 tokenize -m "$model" --ids -f "$work/absent"
says "absent"

# ---- apply-template ----
cat >"$work/messages.json" <<'END'
[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Grüße <b>"}, {"role": "assistant", "content": "4 "}]
END
printf '%s' '{% for m in messages %}[{{ m.role }}]{{ m.content }}{{ eos_token }}{% endfor %}{% if tools %}{{ tools|tojson }}{% endif %}{% if add_generation_prompt %}[assistant]{% endif %}{{ x }}' >"$work/template.jinja"
echo '[{"name": "f"}]' >"$work/tools.json"
exits 0 apply-template --chat-template-file "$work/template.jinja" --messages "$work/messages.json" --tools "$work/tools.json" --eos-token '</s>' --kwargs '{"x": 1.50}'
printf '%s' '[system]Be brief.</s>[user]Grüße <b></s>[assistant]4 </s>[{"name": "f"}][assistant]1.5' | cmp -s - "$out"
check "the prompt as rendered, nothing added"
says_nothing
exits 0 apply-template --chat-template-file "$work/template.jinja" --messages "$work/messages.json" --no-generation-prompt --json
prints_line '\{"prompt": ".*"\}'
exits 0 apply-template --chat-template-file "$work/template.jinja" --messages "$work/messages.json" --continue-final-message content
printf '%s' '[system]Be brief.[user]Grüße <b>[assistant]4 ' | cmp -s - "$out"
check "the prompt ends inside the last message"
exits 0 apply-template -m "$data/models/gemma.gguf" --messages "$work/messages.json"
prints '<|im_start|>user'
says "has no chat template: ChatML is used"
exits 0 apply-template -m "$data/models/gemma.gguf" --chat-template-file "$work/template.jinja" --messages "$work/messages.json"
says_nothing
"$cli" apply-template --chat-template-file "$work/template.jinja" --messages - <"$work/messages.json" >"$out" 2>"$err"
check "messages of a pipe"
# null content is None, another null member is absent, null within arguments and schemas is null
cat >"$work/null.json" <<'END'
[{"role": "assistant", "content": null, "refusal": null, "tool_calls": [{"function": {"name": "f", "arguments": {"x": null}}}]}, {"role": "user", "content": "", "tool_calls": null}]
END
echo '[{"name": "f", "parameters": {"default": null}}]' >"$work/null_tools.json"
printf '%s' '{% for m in messages %}{{ m.content is none }} {{ m.refusal is defined }} {{ "tool_calls" in m }}{% for c in m.tool_calls %} {{ c.function.arguments|tojson }}{% endfor %};{% endfor %}{{ tools|tojson }}' >"$work/null.jinja"
exits 0 apply-template --chat-template-file "$work/null.jinja" --messages "$work/null.json" --tools "$work/null_tools.json"
printf '%s' 'True False True {"x": null};False False False;[{"name": "f", "parameters": {"default": null}}]' | cmp -s - "$out"
check "null members of a message, of arguments and of a schema"
exits 2 apply-template -m "$model"
says "--messages"
exits 2 apply-template -m "$model" --messages "$work/none.json"
says "cannot read --messages"
exits 1 apply-template -m "$model" --messages "$work/tools.json" --chat-template-file "$work/template.jinja" --kwargs '{'
says "kwargs: no JSON"
echo '{{ raise_exception("Not " ~ messages[0].role) }}' >"$work/template.jinja"
exits 1 apply-template --chat-template-file "$work/template.jinja" --messages "$work/messages.json"
says "line 1, column 4: Not system"
prints_nothing
echo '{% for m in messages %}' >"$work/template.jinja"
exits 3 apply-template --chat-template-file "$work/template.jinja" --messages "$work/messages.json"
says "chat template: line 1, column"

# ---- convert, models ----
exits 2 convert -m "$model"
says "--outfile"
exits 2 convert -m "$model" --outfile "$work/new.gguf" --outtype q9
says "q9"
exits 0 convert -m "$model" --outfile "$work/new.gguf" --outtype f16
[ ! -s "$out" ] && [ "$(ls "$work" | grep -c new)" = 1 ]
check "convert prints nothing and leaves one file"
exits 2 convert -m "$model" --outfile "$work/new.gguf"
says "exists already"
exits 0 convert -m "$model" --out "$work/new.gguf" --outtype q8_0 --overwrite
exits 0 run --raw -m "$work/new.gguf" --no-cache -p "the" -n 4 --temp 0
exits 3 convert -m "$work/empty" --outfile "$work/other.gguf"
for command in convert quantize; do
    exits 3 $command -m "$data/quantized/awq" --outfile "$work/other.gguf"
    says "the folder has no vocabulary"
    [ ! -e "$work/other.gguf" ]
    check "$command leaves no file without a vocabulary"
done
exits 0 quantize "$data/models/llama-f32.gguf" --dry-run --type Q4_0
prints_row 'blk\.1\.ffn_down\.weight  *\[64, 128\] F32 -> Q4_0, 0\.00 MB'
prints_row '0\.1 MB of tensors, 5\.41 bits per weight'
exits 2 quantize "$data/models/llama-f32.gguf" --dry-run --target-bpw 4
prints_nothing
says "--target-size and --target-bpw need a text: -f FILE"
exits 2 quantize "$data/models/llama-f32.gguf" --dry-run -f "$data/models/llama-f32.txt"
prints_nothing
says "-f is the text for --target-size or --target-bpw, and there is neither"
exits 0 convert -m "$data/quantized/awq" --outfile "$work/other.gguf" --no-vocab
exits 1 convert -m "$model" --outfile "$work/none/new.gguf"
(ulimit -f 8; exec "$cli" convert -m "$model" --outfile "$work/large.gguf" --outtype f32) >"$out" 2>"$err"
[ $? = 1 ] && grep -q "large.gguf: cannot write" "$err" && [ "$(ls "$work" | grep -c large)" = 0 ]
check "convert without room says so and leaves nothing"
exits 0 models
prints "qwen3"
exits 0 models --json
prints '"architectures"'

# ---- Keys that are not supported ----
cp -r "$data/folders/qwen35" "$work/unknown"
chmod -R u+w "$work/unknown"
sed '1s/{/{ "clip_qkv": 8,/' "$data/folders/qwen35/config.json" >"$work/unknown/config.json"
exits 3 logits --no-cache -m "$work/unknown" --ids "1 2" --out "$work/l.npy"
says "clip_qkv is 8"
says "--ignore-key clip_qkv"
exits 0 logits --no-cache -m "$work/unknown" --ignore-key clip_qkv --ids "1 2" --out "$work/l.npy"
exits 3 convert -m "$work/unknown" --outfile "$work/unknown.gguf"
says "clip_qkv is 8"
exits 0 convert -m "$work/unknown" --ignore-key clip_qkv --no-vocab --outfile "$work/unknown.gguf"
exits 3 quantize -m "$work/unknown" --outfile "$work/unknown.q8.gguf" --type Q8_0
exits 0 quantize -m "$work/unknown" --ignore-key clip_qkv --no-vocab --outfile "$work/unknown.q8.gguf" --type Q8_0
exits 0 logits --no-cache -m "$work/unknown" --ignore-key clip_qkv --quantize Q8_0 --ids "1 2" --out "$work/l8.npy"
exits 2 logits -m "$model" --override-kv qwen2.block_counts=int:7 --ids "1 2" --out "$work/l.npy"
says "qwen2.block_counts"

# ---- inspect ----
exits 0 inspect -m "$model"
prints token_embd.weight
says_nothing
exits 0 inspect -m "$model" --json --override-kv qwen2.block_count=int:7 --override-kv my.key=str:mine
prints '"qwen2.block_count": 7'
prints '"my.key": "mine"'
exits 2 inspect -m "$model" --override-kv nonsense
exits 0 inspect -m "$model" --json --sha256
for key in '"format": "gguf"' '"architecture": "' '"metadata": {' '"tensors": [' '"canonical": "' '"shape": [' '"offset": '; do
    prints "$key"
done
grep -qE '"sha256_f32": "[0-9a-f]{64}"' "$out"
check "hashes"

# ---- run ----
exits 0 run --raw -m "$model" -p "once upon" -n 12 --temp 0 --no-display-prompt
cp "$out" "$work/greedy"
[ -s "$out" ]
check "run generates"
says "tok/s"
exits 0 run --raw -m "$model" -p "once upon" -n 12 --temp 0 -t 1 -b 1
printf 'once upon' | cat - "$work/greedy" | cmp -s "$out" -
check "the prompt is displayed first, and threads and batches change nothing"
exits 0 --raw -m "$model" -p "once upon" -n 12 --temp 0 --no-display-prompt
cmp -s "$out" "$work/greedy"
check "run is the default command"
printf 'once upon' | "$cli" run --raw -m "$model" -n 12 --temp 0 --no-display-prompt >"$out" 2>"$err"
cmp -s "$out" "$work/greedy"
check "piped standard input is the prompt"
exits 0 run --raw -m "$model" -p "once upon" -n 20 --temp 0.9 --seed 1 --no-display-prompt
cp "$out" "$work/seeded"
exits 0 run --raw -m "$model" -p "once upon" -n 20 --temp 0.9 --seed 1 --no-display-prompt
cmp -s "$out" "$work/seeded"
check "a seed gives the same text"

exits 0 run --raw -m "$model" -p "once upon" -n 20 --temp 0.9 --seed 1 --no-display-prompt --spec-type none
cmp -s "$out" "$work/seeded"
check "and without drafts too"
exits 0 run --raw -m "$model" -p "once upon" -n 20 --temp 0.9 --seed 1 --no-display-prompt -md "$model"
cmp -s "$out" "$work/seeded"
check "and with a draft model"
exits 2 run --raw -m "$model" -p "once upon" --spec-type draft-simple
says "needs a draft model"
exits 2 run --raw -m "$model" -p "once upon" --spec-type none -md "$model"
says "no draft model is to be used"

exits 0 run --raw -m "$model" -p "once upon" -n 20 --temp 0.9 --seed 0 -np 2 --json
grep -q '"seed": 1' "$out"
check "parallel completions have the next seeds"
exits 2 run --raw -m "$model" -p "once upon" -np 0

full=$(cat "$work/greedy")
stop=$(printf %s "$full" | head -c 9 | tail -c 4)
exits 0 run --raw -m "$model" -p "once upon" -n 12 --temp 0 --no-display-prompt -r "never written" -r "$stop"
[ "$(cat "$out")" = "${full%%"$stop"*}" ]
check "the text ends before a reverse prompt"
exits 0 run --raw -m "$model" -p "once upon" -n 12 --temp 0 --json --reverse-prompt "$stop"
prints '"stop": "text"'
exits 2 run --raw -m "$model" -p "once upon" -r ""
says "-r"

# ---- Sampling ----
sampled="run --raw -m $model --no-cache -n 16 --seed 7 --no-display-prompt"
exits 0 $sampled -p "once upon" --temp 0.9
cp "$out" "$work/usual"
exits 0 $sampled -p "once upon" --temp 0.9 --samplers "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature"
cmp -s "$out" "$work/usual"
check "the usual order by names"
exits 0 $sampled -p "once upon" --temp 0.9 --sampler-seq edskypmxt
cmp -s "$out" "$work/usual"
check "the usual order by letters"
exits 0 $sampled -p "once upon" --temp 0
cp "$out" "$work/greedy"
exits 0 $sampled -p "once upon" --top-k 1 --sampler-seq k --temp 5
cmp -s "$out" "$work/greedy"
check "top-k 1 alone takes the most likely"
exits 0 $sampled -p "once upon" --temp 2 -l 257+inf -n 3 --json
prints '" t t t"'
exits 0 $sampled -p "once upon" --samplers "min_p;adaptive_p" --adaptive-target 0.3 --dynatemp-range 0.5 --typical 0.9 --top-nsigma 2
for version in 1 2; do
    exits 0 $sampled -p "once upon" --mirostat $version --mirostat-ent 3 --mirostat-lr 0.2
done
exits 0 $sampled -p "once upon" --temp 0 -l 257+50
prints " t t t t t t t t"
exits 0 $sampled -p "once upon" --temp 0 -l 257+50 --dry-multiplier 60 --dry-sequence-breaker none
! grep -qF " t t t t t" "$out"
check "DRY breaks a repetition off"
exits 0 $sampled -p "once upon" --temp 0 -l 257+50 --dry-multiplier 60 --dry-sequence-breaker "\\n" --dry-sequence-breaker " t"
prints " t t t t t t t t"
exits 2 run --raw -m "$model" -p x --samplers "top_k;nucleos"
says "'nucleos' is none of penalties, dry"
exits 2 run --raw -m "$model" -p x --sampler-seq kz
says "its letter 'z'"
exits 2 run --raw -m "$model" -p x --samplers top_k --sampler-seq k
says "only one of them"
exits_with AKUNU_SAMPLERS=top_k 0 $sampled -p "once upon" --temp 0.9 --sampler-seq edskypmxt
cmp -s "$out" "$work/usual"
check "a flag wins over its rival in the environment"
for bad in 5 x+1 5+ 5+nan -1-1 5++1 99999999999+1; do
    exits 2 run --raw -m "$model" -p x --logit-bias="$bad"
    says "--logit-bias $bad"
done
exits 2 run --raw -m "$model" -p x -l 416-inf
says "416 is not a token of this model, which has 0 to 415"
exits 2 run --raw -m "$model" -p x --dry-sequence-breaker ""
says "sequence breaker 1 of DRY has 0 bytes"
exits 2 run --raw -m "$model" -p x --logprobs 1
says "--json"
exits 0 $sampled -p "once upon" -n 3 --json --logprobs 2 --temp 0
prints '"logprobs": [{"id": '
[ "$(grep -o '"logprob":' "$out" | wc -l)" -eq 9 ]
check "three tokens with the two most likely each have log-probabilities"
rich="--temp 0.9 --dynatemp-range 0.3 --repeat-penalty 1.1 --dry-multiplier 0.8 --typical 0.95 --xtc-probability 0.3 --top-nsigma 2"
exits 0 $sampled -p "once upon a time" $rich
cp "$out" "$work/rich"
for how in "-b 1" "-b 3" "-t 1" "-c 64" "--spec-type none" $("$cli" --version | sed -n 's/^instruction sets: \(.*\) (best.*/\1/p' | sed 's/[a-z0-9_]*/--cpu=&/g'); do
    exits 0 $sampled -p "once upon a time" $rich $how
    cmp -s "$out" "$work/rich"
    check "the same text with $how"
done
bare="--temp 1.5 --sampler-seq t --json"
exits 0 $sampled -p "once upon" $bare
grep -o '"text": [^,]*, "stop' "$out" | head -1 >"$work/sampled"
exits 0 $sampled -p "once upon" $bare --logprobs 0
grep -o '"text": [^,]*, "stop' "$out" | head -1 | cmp -s - "$work/sampled"
check "log-probabilities do not change what the backend would have sampled"
exits 2 $sampled -p "once upon" --json --logprobs 0 -np 2
says "no -np"
exits 0 run --raw -m "$model" -p "once upon" -n 5 --ignore-eos --json
prints '"n_generated": 5'
exits 1 run --raw -m "$model" -p "a much longer prompt than that fits, of many more tokens" -c 4 -n 1
says "holds 4"
prints_nothing

# ---- Grammars: the exact forms and exit codes of grammar-check; run is held to one ----
schema='{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false}'
printf '%s' "$schema" >"$work/schema.json"
printf 'root ::= "yes" | "no"\n' >"$work/answer.gbnf"
exits 0 grammar-check -j "$schema" -p '{"a": 1}'
exits 0 grammar-check -j "$work/schema.json" -p ' { "a" : 1.0 } '
exits 1 grammar-check -j "$work/schema.json" -p '{"a": "b"}'
prints "line 1, column 7 (byte 6)"
exits 1 grammar-check -j "$schema" -p '{"a": 1'
prints "ends too early"
exits 1 grammar-check -j "$schema" --json -p '{'
prints '"match": false'
exits 0 grammar-check --grammar-file "$work/answer.gbnf" -p yes
exits 1 grammar-check --grammar 'root ::= "yes"' -p ye
exits 2 grammar-check --grammar 'root ::= "a' -p a
says "1:12: "
exits 2 grammar-check -j '{"uniqueItems": true}' -p '[]'
says '"uniqueItems" is not supported'
exits 0 grammar-check -j '{"uniqueItems": true}' --json-schema-lax -p '[]'
says '"uniqueItems" is passed over'
exits 2 grammar-check -p a
says "a grammar is expected"
exits 2 grammar-check --grammar a --grammar-file b -p a
exits 2 grammar-check -j "$work/none.json" -p a
says "none.json"
exits 0 grammar-check -m "$model" -j "$schema" -p '{"a":12}'
exits 0 run --raw -m "$model" --grammar-file "$work/answer.gbnf" -p "Is it so?" -n 50 --no-display-prompt
grep -qxE "(yes|no)" "$out"
check "the grammar's text and no more"
exits 2 run --raw -m "$model" -j '{"if": {"format": "date"}, "then": false}' -p x
says '"if" is not supported'

# ---- embed: one object a text, rows of an .npy file, texts from anywhere ----
encoder=$data/encoders/bert/model.gguf
exits 0 embed -m "$model" -p "Hello, world" --json --pooling mean
prints_line '[{]"embedding": \[(-?[0-9.e-]+, )+-?[0-9.e-]+\][}]'
says_nothing
cp "$out" "$work/one"
exits 0 embed -m "$model" --json --pooling mean -p x "Hello, world"
sed -n '2s/]$//p' "$out" | cmp -s - "$work/one"
check "a text's embedding does not depend on others"
printf 'x\r\nHello, world' >"$work/lines"
mv "$out" "$work/list"
exits 0 embed -m "$model" --json --pooling mean -f "$work/lines" -t 1 -b 7
cmp -s "$out" "$work/list"
check "lines of a file are texts"
exits 0 embed -m "$model" --out "$work/e.npy" -p x y z
prints_nothing
head -c 128 "$work/e.npy" | grep -qa "'<f4', 'fortran_order': False, 'shape': (3, "
check "an .npy file of three rows"
exits 0 embed -m "$model" x y --normalize
[ "$(wc -l <"$out")" -eq 2 ] && awk '{ s = 0; for (i = 1; i <= NF; i++) s += $i * $i; if (s < 0.99999 || s > 1.00001) exit 1 }' "$out"
check "lines of numbers, at unit length"
for flags in "" "-f -"; do
    # shellcheck disable=SC2086
    exits 2 embed -m "$model" $flags
    says "standard input has no text"
done
exits 2 embed -m "$model" x -f "$work/lines"
says "only one of them"
exits 2 embed -m "$model" x --pooling most
says "expected one of model, mean, cls, last, max"
exits 2 embed -m "$model" x --prompt-name query
says 'prompt "query": the model has no prompts'
mkdir -p "$work/sentence"
cp -R "$data/sentence/." "$work/sentence"
printf '{"max_seq_length": 6}' >"$work/sentence/sentence_bert_config.json"
printf '{"prompts": {"query": "query: "}}' >"$work/sentence/config_sentence_transformers.json"
exits 0 embed -m "$work/sentence" --json --no-cache -p "query: the light"
says_nothing
cp "$out" "$work/one"
exits 0 embed -m "$work/sentence" --json --no-cache --prompt-name query -p "the light . the light"
says "1 of 1 texts was cut to the 6 tokens"
exits 0 embed -m "$work/sentence" --json --no-cache --prompt-name query -p "the light"
cmp -s "$out" "$work/one"
check "a prompt goes before the text"
exits 2 embed -m "$model" x --normalize --no-normalize
exits 2 embed -m "$model" x --json --out "$work/e.npy"
exits 1 embed -m "$model" "a text of some length" -c 2
says "and the context holds 2"
exits 3 embed -m "$encoder" x
says "'embed' needs a vocabulary"
exits 3 run --raw -m "$encoder" -p x
says "is an encoder: it makes embeddings, which is what 'akunu-cli embed' is for"
exits 3 logits -m "$encoder" --ids 1 --out "$work/l.npy"
says "is an encoder"

# ---- logits: an .npy file, the same bits whatever the flags ----
ids="5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20"
exits 0 logits -m "$model" --ids "$ids" --out "$work/base.npy" --no-cache -t 1 -b 512
prints_nothing
[ "$(head -c 6 "$work/base.npy" | od -An -tx1 | tr -d ' \n')" = 934e554d5059 ]
check "the magic of a .npy file"
header=$(head -c 128 "$work/base.npy" | tail -c 118)
case $header in
"{'descr': '<f4', 'fortran_order': False, 'shape': (16, "*) ;;
*) false ;;
esac
check "the header of a .npy file"
columns=${header##*16, }
columns=${columns%%)*}
[ "$(wc -c <"$work/base.npy")" -eq $((128 + 16 * 4 * ${columns:-0})) ]
check "the size of a .npy file"
isas=$("$cli" --version | sed -n 's/^instruction sets: \(.*\) (best.*/\1/p')
for isa in $isas; do
    exits 0 logits -m "$model" --ids "$ids" --out "$work/l.npy" --cpu "$isa" --cache-dir "$work/cache"
    cmp -s "$work/l.npy" "$work/base.npy"
    check "the same logits with --cpu $isa"
done
# What cannot be used lacks in the build, or else in the machine.
built=$("$cli" --version | sed -n 's/^build: .*, kernels: \(.*\);.*/\1/p')
for isa in avx2 avxvnni avx512 amx neon neon_i8mm pdp11; do
    case " $isas : $built : pdp11 " in
    *" $isa "*:*:*) continue ;;
    *:*" $isa "*:*) why="this machine cannot run its kernels" ;;
    *:*:*" $isa "*) why="there is no such instruction set" ;;
    *) why="this build does not contain its kernels" ;;
    esac
    exits 2 logits -m "$model" --ids "$ids" --out "$work/l.npy" --cpu "$isa"
    says "--cpu $isa: $why; usable here: $(echo "$isas" | sed 's/ /, /g')"
done
for flags in "-b 1" "-b 7" "-t 2" "-t 2 -b 3"; do
    # shellcheck disable=SC2086
    exits 0 logits -m "$model" --ids "$ids" --out "$work/l.npy" $flags
    cmp -s "$work/l.npy" "$work/base.npy"
    check "the same logits with $flags"
done

# ---- The packed cache ----
mixed=$data/models/mixed.gguf
exits 0 logits -m "$mixed" --ids "$ids" --out "$work/mixed.npy" --no-cache
same_logits() {
    exits 0 logits -m "$mixed" --ids "$ids" --out "$work/l.npy" "$@"
    cmp -s "$work/l.npy" "$work/mixed.npy"
    check "the same logits with $*"
}
exits 0 cache list
prints "nothing in $work/packed"
# a limit that the model exceeds, by flag, environment and configuration
same_logits --cache-limit 0.00001
says "no cache of the packed weights in $work/packed: they take "
says "and all of them may take 10.0 kB (the cache limit)"
exits_with AKUNU_CACHE_LIMIT=0.00001 0 logits -m "$mixed" --ids "$ids" --out "$work/l.npy"
says "(the cache limit)"
echo 'cache-limit: 0.00001' >"$work/limit.yaml"
same_logits --config "$work/limit.yaml"
says "(the cache limit)"
same_logits --cache-limit 10K
says "and all of them may take 10.0 kB (the cache limit)"
exits_with AKUNU_CACHE_LIMIT=0.01M 0 logits -m "$mixed" --ids "$ids" --out "$work/l.npy"
says "and all of them may take 10.0 kB (the cache limit)"
echo 'cache-limit: 10k' >"$work/limit.yaml"
same_logits --config "$work/limit.yaml"
says "and all of them may take 10.0 kB (the cache limit)"
for limit in 0 0G -1 5X 10KB nan 2000000G; do
    exits 2 logits -m "$mixed" --ids "$ids" --out "$work/l.npy" --cache-limit $limit
    says "--cache-limit $limit: expected a size such as 500M or 3.5G"
done
# what the next start does
exits 0 cache show "$mixed" --cache-limit 10K
prints_row "next start    packs .* MB into memory: they take .*, and all of them may take 10.0 kB"
prints_row "tier          source"
exits 0 cache show "$mixed"
prints_row "next start    packs .* MB into .*[.]packed: they are not in the cache yet"
exits 0 cache show "$model"
prints_row "next start    packs nothing: the kernels read the weights as the file has them"
exits 0 cache show "$mixed" --cache-dir "$work/l.npy/no"
prints_row "next start    packs .* MB into memory: the cache folder cannot be written: .*"
exits 2 cache prune -m "$mixed"
says "-m has no effect on 'cache prune'"
exits 2 cache prune "$mixed"
exits 3 cache show "$work/no.gguf"
exits 0 cache list
prints "nothing in $work/packed"
# what is kept is said once
same_logits
says "packed weights are kept for later starts: "
says "B in $work/packed, where they may take "
says "--no-cache keeps none"
[ "$(wc -l <"$err")" -eq 1 ]
check "one line about it"
same_logits
says_nothing
exits 0 cache
prints "ready"
prints "mixed.gguf: the next start maps it"
exits 0 cache list -m "$mixed"
prints_row "tier          packed cache"
prints_row "next start    maps .* MB from .*[.]packed .*"
cp "$mixed" "$work/copy.gguf"
exits 0 logits -m "$work/copy.gguf" --ids "$ids" --out "$work/l.npy"
touch -d 2001-01-01 "$work/copy.gguf"
exits 0 cache show "$work/copy.gguf"
prints_row "next start    packs .*: the model file has changed since they were packed"
exits 0 cache
prints "copy.gguf: the model file has changed since they were packed"
rm "$work/copy.gguf"
exits 0 cache
prints "copy.gguf: its model file is gone"
exits 0 cache prune
prints_line "removed 1 file, .*"
# files of folders are called alike
exits 0 logits -m "$data/quantized/awq" --ids "$ids" --out "$work/l.npy" --cache-dir "$work/folder"
exits 0 cache --cache-dir "$work/folder"
prints " awq/model.safetensors: the next start maps it"
exits 0 cache list --json
prints '"state": "ready"'
printf x | dd of="$(echo "$work"/packed/*.packed)" bs=1 seek=3000000 conv=notrunc 2>/dev/null
exits 0 cache list
prints "damaged"
exits 0 cache show "$mixed"
prints_row "next start    packs .*: those in the cache are damaged"
same_logits
says "damaged"
exits 0 cache prune
prints_line "removed 0 files, 0.0 MB"
exits 0 cache prune --older-than 1
prints_line "removed 0 files, .*"
: >"$work/packed/0123456789abcdef0123456789abcdef.packed.part"
exits 0 cache list
prints "unfinished"
exits 0 cache prune --json
prints '"removed": 1'
exits 0 cache prune --all
prints_line "removed 1 file, .*"
[ -z "$(ls -A "$work/packed")" ]
check "the cache is empty"
same_logits --cache-dir "$work/l.npy/no"
says "no cache of the packed weights in $work/l.npy/no"
[ "$(wc -l <"$err")" -eq 1 ]
check "one line about it"

# ---- The prompt cache ----
long=$(awk 'BEGIN { for (i = 0; i < 14; i++) printf "once upon a time %d ", i }')
asked="run --raw -m $mixed -n 8 --temp 0 --no-display-prompt"
runs() {
    exits 0 $asked -p "$long$1" -c 256 ${2:-}
}
prompt_of() {
    runs "$1" --no-prompt-cache
    cp "$out" "$work/cold"
}
exits 0 tokenize -m "$mixed" -p "$long" --ids
[ "$(wc -w <"$out")" -ge 128 ] && [ "$(wc -w <"$out")" -le 220 ]
check "the prompt is a long one"
prompt_of ""
exits 0 cache list
! grep -q "a prompt of" "$out"
check "--no-prompt-cache keeps nothing"
runs "" --no-cache
exits 0 cache list
! grep -q "a prompt of" "$out"
check "nor does --no-cache"
runs "" "--prompt-cache-limit 0.00001"
says "it would take more than all kept prompts may"
runs ""
! grep -q "of the prompt cache" "$err"
check "the first time is a cold one"
says "prompts are kept for later runs: this one of "
says " in $work/packed, where they may take 2.0 GB"
says "--no-prompt-cache keeps none"
exits 0 cache list
prints "a prompt of"
for more in "" " the end"; do
    prompt_of "$more"
    runs "$more"
    ! grep -q "prompts are kept" "$err"
    check "that is said once"
    says "of the prompt cache"
    cmp -s "$out" "$work/cold"
    check "a kept prompt gives the same text"
done
[ "$(stat -c %a "$work/packed" "$work"/packed/*.p* | sort -u | tr '\n' ' ')" = "600 700 " ]
check "only the user can read what is kept"
for file in "$work"/packed/*.prompt; do printf x | dd of="$file" bs=1 seek=20000 conv=notrunc 2>/dev/null; done
exits 0 cache list
prints "damaged"
prompt_of ""
runs ""
! grep -q "of the prompt cache" "$err" && cmp -s "$out" "$work/cold"
check "a damaged file is not used"
runs ""
says "of the prompt cache"
exits 0 run --raw -m "$mixed" -n 4 --temp 0 -p "once upon" --prompt-cache "$work/one.prompt"
! grep -q "kept" "$err"
check "nothing is said about a file that the user names"
exits 0 run --raw -m "$mixed" -n 4 --temp 0 -p "once upon" --prompt-cache "$work/one.prompt" --json
grep -q '"n_cached": 0' "$out" && exit_code=1 || exit_code=0
[ $exit_code -eq 0 ]
check "--prompt-cache names a file, for short prompts too"
exits 0 run --raw -m "$mixed" -n 4 --temp 0 -p "once upon" --prompt-cache "$work/no/such"
says "prompt cache: not used"
[ "$(grep -c "prompt cache" "$err")" -eq 1 ]
check "one line about it"
exits 0 cache prune --all
[ -z "$(ls -A "$work/packed")" ]
check "prune removes prompts"

exits_with AKUNU_NO_CACHE=1 0 logits -m "$mixed" --ids "$ids" --out "$work/l.npy"
[ -z "$(ls -A "$work/packed")" ]
check "AKUNU_NO_CACHE is --no-cache"
exits 2 cache prunee
says "did you mean prune"
exits 2 cache prune list
exits 2 cache prune --older-than -1
exits 1 cache list --cache-dir "$work/l.npy"

exits 0 logits -m "$model" --ids "$ids" --out "$work/f32.npy" -ctk f32 -ctv f32
exits 1 logits -m "$model" --ids "$ids" --out "$work/l2.npy" -c 8
says "16"
says "8"
exits 1 logits -m "$model" --ids "$ids" --out "$work/no/such.npy"

# ---- perplexity ----
awk 'BEGIN { for (i = 0; i < 600; i++) printf "the %d. house, ", i * 7919 % 1000 }' >"$work/long"
exits 0 perplexity -m "$model" -f "$work/long" -c 64 --chunks 3
prints_line 'perplexity: [0-9.]+ ± [0-9.]+ \(3 chunks of 64\)'
cp "$out" "$work/perplexity"
exits 0 perplexity -m "$model" -f "$work/long" -c 64 --chunks 3 -b 5 -t 1
cmp -s "$out" "$work/perplexity"
check "perplexity does not depend on the batch"
# Against transformers in float32: tests/golden/cli_perplexity.py.
exits 0 perplexity -m "$bos_model" -c 40 -ctk f32 -ctv f32 -p "From the way the regimental commander saluted the commander-in-chief and
dev"
awk '{ x = $2 / 4318.8413 - 1; y = $4 / 2367.0133 - 1; exit !(x * x < 1e-10 && y * y < 1e-10) }' "$out"
check "perplexity and its error as transformers' logits give them"
exits 0 perplexity -m "$model" -f "$work/long" -c 64 --chunks 3 --json
prints '"chunks": 3'
exits 1 perplexity -m "$model" -p "too short" -c 64
says "64"

# ---- compress ----
exits 0 compress "$model" "$work/small" --int8
says "MB of matrices"
says "least cosine of a matrix with the source's: 0.9999"
exits 0 compress -m "$model" --outdir "$work/small" --int4 -f "$work/long"
says "saved"
says "KL divergence from the source"
exits 0 logits -m "$work/small" --ids "$ids" --out "$work/l.npy"
exits 2 compress "$model" "$work/small" --int4
says "has int4 already"
exits 1 compress "$model" "$work/smaller" --int3 -f "$work/long" --max-kl 0
says "loses too much"
exits 1 compress "$model" "$work/least" --int4 -f "$work/long" --min-top1 100
says " (no limit), equal best tokens "
exits 3 inspect -m "$work/smaller"
exits 2 compress "$model" "$work/smallest"
says "--int8, --int4 or --int3"
exits 2 compress "$model" "$work/smallest" --int8 --int4
says "--int8 and --int4"
exits 2 compress "$model" "$work/smallest" --int3
says "-f FILE"
exits 2 compress "$model" "$work/smallest" --int4 --max-kl 1
says "-f FILE"
exits 2 compress "$model" "$work/smallest" --int4 --group-size 48
says "48"
[ ! -e "$work/smallest" ]
check "a refused compress leaves nothing"

# ---- imatrix ----
# imatrix ARGUMENT...: over the chunks of one text.
imatrix() {
    want=$1
    shift
    exits "$want" imatrix -m "$model" -f "$work/long" -c 64 "$@"
}
imatrix 0 --chunks 6 -o "$work/im"
says "14 tensors, 384 tokens"
! grep -q "no token" "$err"
check "every matrix has been multiplied"
imatrix 0 --chunks 6 -o "$work/im1" -t 1 -b 20 --save-frequency 1
cmp -s "$work/im" "$work/im1"
check "importance depends neither on threads nor on passes, and may be saved in between"
imatrix 0 --chunks 2 -o "$work/im2"
imatrix 0 --chunks 3 -o "$work/im2" --in-file "$work/im2" --from-chunk 2
imatrix 0 --chunks 1 -o "$work/im3" --in-file "$work/im2" --chunk 5 --cpu scalar
cmp -s "$work/im" "$work/im3"
check "a run that goes on makes the file of an uninterrupted one"
imatrix 0 --chunks 1 -o "$work/im4" --process-output
says "15 tensors"
# Without a model.
exits 0 imatrix -m "$model" --own-text -c 64 --chunks 2 -o "$work/own"
exits 0 imatrix -m "$model" --own-text -c 64 --chunks 2 -o "$work/own1" -t 1 --cpu scalar
cmp -s "$work/own" "$work/own1"
check "the model writes the same text with any threads and kernels"
exits 2 imatrix -m "$model" --own-text -f "$work/long" -o "$work/none"
says "only one of them can be given"
exits 0 imatrix --in-file "$work/im" --in-file "$work/im" -c 64 -o "$work/sum"
says "14 tensors, 768 tokens"
exits 0 quantize "$model" "$work/by-sum.gguf" --type Q4_0 --imatrix "$work/sum"
exits 0 quantize "$model" "$work/by-one.gguf" --type Q4_0 --imatrix "$work/im"
cmp -s "$work/by-sum.gguf" "$work/by-one.gguf"
check "the mean of a file with itself is its own"
# What is refused leaves nothing.
imatrix 2 --chunks 1 -o "$work/im"
says "--overwrite"
imatrix 2 --chunks 1
says "--outfile"
imatrix 1 -o "$work/no/such"
says "$work/no/such"
imatrix 2 -o "$work"
says "not a regular file"
imatrix 3 --in-file "$work/long" -o "$work/none"
says "importance matrix"
imatrix 3 --in-file "$model" -o "$work/none"
says "in_sum2"
exits 2 imatrix -m "$data/models/qwen3.gguf" -f "$work/long" -c 64 --chunks 1 --in-file "$work/im" -o "$work/none"
says "another model"
imatrix 1 --from-chunk 100000 -o "$work/none"
says "--from-chunk"
imatrix 1 -c 100000 -o "$work/none"
says "one chunk takes"
[ ! -e "$work/none" ] && ! ls "$work"/*.part >/dev/null 2>&1
check "a refused imatrix leaves nothing"

# ---- bench ----
exits 0 bench -m "$model" -p 8,16 -p 24 -n 4 -np 1,4 -d 0,8 -r 3 -t 1 -o json
cp "$out" "$work/bench.json"
for key in '"test": "pp16"' '"test": "tg4@d8"' '"n_prompt": 16' '"n_gen": 4' '"n_depth": 8' '"avg_ts": ' '"stddev_ts": ' '"samples_ts": [' \
    '"roofline_percent": '; do
    prints "$key"
done
exits 0 bench -m "$model" -p 16 -n 0 -r 1
prints "| pp16 |"
exits 0 bench -m "$model" -p 16 -n 0 -r 1 -o csv
prints "pp16,16,0,0,"

# csv_rows N: standard output is a header and N rows of as many columns, 16.
csv_rows() {
    awk -F, -v n="$1" 'NF != 16 { bad = 1 } END { exit bad || NR != n + 1 }' "$out"
    check "CSV of $1 rows"
}
# json_holds EXPRESSION...: each of Python, over `rows`; where there is Python.
json_holds() {
    command -v python3 >/dev/null || return 0
    python3 -c 'import json, statistics, sys
rows = json.load(open(sys.argv[1]))
bad = [e for e in sys.argv[2:] if not eval(e)]
sys.exit("does not hold: " + "; ".join(bad) if bad else 0)' "$out" "$@" 2>"$err"
    check "JSON: $*"
}
cp "$work/bench.json" "$out"
json_holds '[r["test"] for r in rows] == ["pp8", "pp16", "pp24", "tg4", "tg4@np4", "pp8@d8", "pp16@d8", "pp24@d8", "tg4@d8", "tg4@d8@np4"]' \
    '[r["n_parallel"] for r in rows[:5]] == [1, 1, 1, 1, 4]' \
    'all(len(r["samples_ts"]) == 3 and sorted(r["samples_ts"])[1] == r["median_ts"] for r in rows)' \
    'all(r["avg_ts"] > 0 and r["roofline_percent"] > 0 for r in rows)' \
    'all(abs(r["avg_ts"] - statistics.mean(r["samples_ts"])) < 1e-9 * r["avg_ts"] for r in rows)' \
    'all(abs(r["stddev_ts"] - statistics.stdev(r["samples_ts"])) < 1e-6 * r["avg_ts"] for r in rows)'
# One test each: prompts, whose limits are measured sooner than those of decoding.
exits 0 bench -m "$model" -m "$bos_model" -p 8 -n 0 -t 1,2 -b 4,8 -r 1 -o csv
csv_rows 8
awk -F, 'NR > 1 { seen[$10 " " $13 " " $16]++ } END { for (i in seen) { n++; bad = bad || seen[i] != 1 }; exit bad || n != 8 }' "$out"
check "every model, thread count and batch has its test"
exits 0 bench -m "$model" -p 8 -n 4 -np 2 -r 1
awk '/^\|/ { n++; if (gsub(/\|/, "|") != 10) bad = 1 } END { exit bad || n != 4 }' "$out"
check "a Markdown table of two rows"
prints "| tg4@np2 |"
prints " cores"
exits 0 bench -m "$model" -p 0 -n 0 --load -r 2 -o json
json_holds '[r["test"] for r in rows] == ["load-cold", "load-warm"] and all(r["avg_ts"] is None for r in rows)' \
    'all(0 < r["ready_seconds"] <= r["first_token_seconds"] and len(r["samples_ready"]) == 2 for r in rows)'
# A file that is nowhere else stays in memory.
if [ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ] && resident=$(mktemp -d /dev/shm/akunu-XXXXXX); then
    cp "$model" "$resident/model.gguf"
    exits 0 bench -m "$resident/model.gguf" -p 0 -n 0 --load -r 1 --no-cache -o json
    rm -rf "$resident"
    says "load-cold is not cold: 100 % of the files stayed in the page cache"
    json_holds '[r["page_cache_kept"] for r in rows] == [1, None]'
fi
exits 0 bench -m "$model" -p 4 -n 0 --load -r 1 -o csv
csv_rows 3
exits 0 bench -m "$model" -p 0 -n 0 --load -r 1
prints "| load-cold |"
exits 0 bench -m "$model" -p 0 -n 4 -np 9 -b 2 -r 1 -o csv
csv_rows 1
exits 2 bench -m "$model" -np 0
says "-np 0"
exits 2 bench -m "$model" -t 1,0
says "-t 1,0"
exits 1 bench -m "$model" -p 0 -n 4 -np 4 -c 15
says "16"
exits 2 bench -m "$model" --profile-out "$work/p.yaml"
says "--tune"
exits 3 bench -m "$model" -m "$work/absent.gguf" -p 4 -n 0 -r 1
says "absent.gguf"
prints_nothing
exits 0 bench -m "$model" -p 8 -n 4 -r 1 --breakdown -o json
json_holds 'all({"attention", "linear output"} < {t["operation"] for t in r["breakdown"]} for r in rows)' \
    'all(t["seconds"] >= 0 and t["wait_seconds"] >= 0 for r in rows for t in r["breakdown"])' \
    'all(t["bytes"] > 0 and t["ops"] > 0 for r in rows for t in r["breakdown"] if "linear" in t["operation"])' \
    'all(a >= b - 1e-12 for r in rows for times in [[t["seconds"] + t["wait_seconds"] for t in r["breakdown"]]] for a, b in zip(times, times[1:]))'
exits 0 bench -m "$model" -p 8,16 -n 0 -r 1 --breakdown -o json # 1 + … + 8 and 1 + … + 16 keys
json_holds '(lambda short, long: round(136 * short / long) == 36)(*(t["ops"] for r in rows for t in r["breakdown"] if t["operation"] == "attention"))'
exits 0 bench -m "$model" -p 0 -n 4 -r 1 --breakdown
prints "tg4, per pass: "
prints "| linear output "
exits 2 bench -m "$model" -p 8 -n 0 -r 1 --breakdown -o csv
says "-o json"
exits 2 bench -m "$model" -p 8 -n 0 -r 1 --breakdown --backend opencl
says "cpu"
prints_nothing

# ---- Relaxed rounding, and OpenBLAS ----
# Prompts of 64 tokens: fewer are never BLAS's.
long_ids=$(i=0; while [ $i -lt 64 ]; do printf '%s ' $((i % 50 + 3)); i=$((i + 1)); done)
# is_close A B: logits that differ in rounding only.
is_close() {
    command -v python3 >/dev/null || return 0
    python3 -c 'import sys
def floats(path):
    import struct
    data = open(path, "rb").read()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    return struct.unpack("<%df" % ((len(data) - start) // 4), data[start:])
a, b = floats(sys.argv[1]), floats(sys.argv[2])
scale = max(map(abs, a))
sys.exit(len(a) != len(b) or max(abs(x - y) for x, y in zip(a, b)) > 0.1 * scale)' "$1" "$2"
    check "$3"
}
for relaxed_model in "$model" "$AK_TEST_DATA/models/llama-f32.gguf"; do
    exits 0 logits -m "$relaxed_model" --ids "$long_ids" --out "$work/own.npy"
    exits 0 logits -m "$relaxed_model" --ids "$long_ids" --out "$work/l.npy" --relaxed
    is_close "$work/own.npy" "$work/l.npy" "--relaxed gives logits near the others"
    exits 0 logits -m "$relaxed_model" --ids "$long_ids" --out "$work/l.npy" --prefill blas
    is_close "$work/own.npy" "$work/l.npy" "--prefill blas gives logits near the others"
    exits_with AKUNU_BLAS=libno-such-blas.so.0 0 logits -m "$relaxed_model" --ids "$long_ids" --out "$work/l.npy" --prefill blas
    says "no BLAS"
    cmp -s "$work/l.npy" "$work/own.npy"
    check "without BLAS the own kernels serve"
done
exits 2 logits -m "$model" --ids "$ids" --out "$work/l.npy" --prefill mkl
says "auto, own, blas"

# ---- Chip profiles ----
printf 'threads: 1\nprefill_chunk: 7\nscale32: {small_n: 3}\n' >"$work/p.yaml"
exits 0 bench -m "$model" --profile "$work/p.yaml" -p 16 -n 0 -r 1 -o json
json_holds 'rows[0]["n_threads"] == 1 and rows[0]["n_batch"] == 7'
exits 0 logits -m "$model" --ids "$ids" --out "$work/l.npy" --profile "$work/p.yaml"
cmp -s "$work/l.npy" "$work/base.npy"
check "the same logits with a profile"
exits_with AKUNU_PROFILE="$work/p.yaml" 0 bench -m "$model" -p 16 -n 0 -r 1 -o json
json_holds 'rows[0]["n_batch"] == 7'
printf 'threads: 1\nthreds: 1\n' >"$work/bad.yaml"
exits 2 run --raw -m "$model" -p x --profile "$work/bad.yaml"
says "bad.yaml:2: unknown key 'threds'"
exits 2 run --raw -m "$model" -p x --profile "$work/absent.yaml"
says "absent.yaml"
printf 'prefetch: {Q4_0: [0, 64]}\n' >"$work/p.yaml"
exits 0 bench -m "$model" --profile "$work/p.yaml" --profile-show
prints "  Q4_0: [0, 64]"
exits 0 logits -m "$model" --ids "$ids" --out "$work/l.npy" --profile "$work/p.yaml"
cmp -s "$work/l.npy" "$work/base.npy"
check "the same logits with other prefetch distances"
if [ "${AK_EMULATED:-}" != 1 ]; then
    quick="-r 1"
    [ "${AKUNU_TEST_FULL:-}" != 1 ] || quick=
    # No words or two.
    # shellcheck disable=SC2086
    exits 0 bench --tune -m "$model" -t 1 --profile-out "$work/tuned.yaml" $quick
    prints "# Chip profile"
    cmp -s "$out" "$work/tuned.yaml"
    check "--tune shows what it wrote"
    exits 3 bench --tune -m "$model" -t 1 -ctk q8_0 --profile-out "$work/none.yaml" -r 1
    [ "$(wc -l <"$err")" -eq 1 ]
    check "one message of a model that cannot be tuned"
    exits 0 logits -m "$model" --ids "$ids" --out "$work/l.npy" --profile "$work/tuned.yaml"
    cmp -s "$work/l.npy" "$work/base.npy"
    check "the same logits with the tuned profile"
fi
exits 2 bench --tune -m "$model" -m "$model" --profile-out "$work/tuned.yaml"
exits 1 bench --tune -t 1 --profile-out "$work/no/such.yaml"
says "such.yaml"

# ---- Streams ----
{
    # Until nobody reads any more.
    (
        trap '' PIPE
        while printf x; do :; done
    ) 2>/dev/null
    "$cli" inspect -m "$model" --json 2>"$err"
    echo $? >"$work/code"
} | :
[ "$(cat "$work/code")" = 0 ] && [ ! -s "$err" ]
check "a closed pipe ends quietly"
if [ -c /dev/full ]; then
    for arguments in "run --raw -p x -n 4 -m" "tokenize --ids -p x -m" "inspect -m" "bench -p 4 -n 0 -r 1 -m"; do
        # shellcheck disable=SC2086
        "$cli" $arguments "$model" >/dev/full 2>"$err" </dev/null
        [ $? -eq 1 ] && grep -q "cannot write" "$err"
        check "a full disk: $arguments"
    done
    exits 1 logits -m "$model" --ids "1 2" --out /dev/full
    says "/dev/full"
fi
exits 2 run --nonsense
! LC_ALL=C grep -q "$(printf '\033')" "$err"
check "no color but on a terminal"

# ---- Ctrl-C ----
# interrupted COMMAND...: sends Ctrl-C to the running program as soon as the command succeeds, and
# again every second: an emulator catches the first one before its program does.
interrupted() {
    within 60 "$@"
    check "waits for: $*"
    while kill -INT $pid; do sleep 1; done 2>/dev/null &
    again=$!
    wait $pid
    [ $? -eq 130 ]
    check "Ctrl-C ends with 130: after $*"
    kill $again 2>/dev/null
    wait $again 2>/dev/null
}
# The handler is there: the signal's bit is in the mask of those that are caught.
catches_ctrl_c() {
    grep -q '^SigCgt:.*[2367abefABEF]$' /proc/$pid/status
}
"$cli" bench -m "$model" -p 256 -n 0 -r 10000 -t 1 >"$out" 2>"$err" </dev/null &
pid=$!
interrupted catches_ctrl_c
: >"$out"
"$cli" run --raw -m "$model" -p "once upon" -n 100000000 --ignore-eos -c 100000 --no-display-prompt >"$out" 2>"$err" </dev/null &
pid=$!
interrupted test -s "$out"

awk 'BEGIN { for (i = 0; i < 200000; i++) printf "the %d. house, ", i * 7919 % 1000 }' >"$work/longer"
"$cli" imatrix -m "$model" -f "$work/longer" -c 64 -t 1 -o "$work/stopped" --save-frequency 3 >"$out" 2>"$err" </dev/null &
pid=$!
interrupted test -s "$work/stopped"
says "--from-chunk"
exits 0 imatrix --in-file "$work/stopped" -c 64 -o "$work/stopped"
"$cli" imatrix -m "$model" -f "$work/longer" -c 64 -t 1 -o "$work/unsaved" --save-frequency 0 >"$out" 2>"$err" </dev/null &
pid=$!
interrupted catches_ctrl_c
[ ! -e "$work/unsaved" ] && ! ls "$work"/*.part >/dev/null 2>&1
check "an interrupted imatrix leaves nothing"

# ---- Exit codes that no flag or file asks for ----
# Addresses run out at more and more limits, in more and more of the work.
if [ "${AK_EMULATED:-}" = 1 ] || ! (ulimit -v 64000 && exec "$cli" --version) >/dev/null 2>&1; then
    echo "SKIPPED: test_cli: no program under a limit of memory here"
else
    n_refused=0 limit=4000 code=127
    # Under less, not even the program and its libraries fit: the system ends it somehow.
    # So it does where the stack cannot grow, for which `run` needs a little more.
    until (ulimit -v $((limit - 500)) && exec "$cli" --version) >/dev/null 2>&1; do
        limit=$((limit + 500))
    done
    until [ $code -eq 0 ] || [ $limit -gt 64000 ]; do
        (ulimit -v $limit && exec "$cli" run --raw -m "$model" -p x -n 1 -t 1) >"$out" 2>"$err" </dev/null
        code=$?
        case $code in
        4)
            says "out of memory"
            n_refused=$((n_refused + 1))
            ;;
        0) ;;
        *)
            false
            check "exit code $code under ulimit -v $limit"
            ;;
        esac
        limit=$((limit + 500))
    done
    [ $n_refused -ge 2 ]
    check "exit code 4 under ulimit -v, $n_refused times"
    (ulimit -v 600000 && exec "$cli" run --raw -m "$model" -p x -n 1 -t 300) >"$out" 2>"$err" </dev/null
    [ $? -eq 4 ]
    check "exit code 4 for a thread that cannot be started"
    (ulimit -v 1000000 && exec "$cli" run --raw -m "$model" -p x -n 1 -t 1 -c 20000000) >"$out" 2>"$err" </dev/null
    [ $? -eq 4 ]
    check "exit code 4 for a context that memory cannot hold"
    says "out of memory for the KV cache"
fi

# ---- The real model, where it is present ----
if [ -e "$real" ]; then
    exits 0 run --raw -m "$real" -p "The capital of France is" -n 6 --temp 0 --no-display-prompt
    prints "Paris"
    exits 0 tokenize -m "$real" --ids -p "<|im_start|>user"
    prints_line '1 4093'
    exits 0 tokenize -m "$real" --no-parse-special --ids -p "<|im_start|>"
    prints_line '[0-9]+( [0-9]+)+'
    # What the README shows, on every machine.
    eval "$(sed -n -E '/^(prompt|set_up)=/p' "$AK_TEST_SOURCE/quickstart")"
    # shellcheck disable=SC2086,SC2154
    exits 0 run --raw -m "$real" -p "$prompt" $set_up
    tr -s '[:space:]' ' ' <"$out" >"$work/written"
    sed -n '/^quickstart: built/,/^prompt /p' "$AK_TEST_SOURCE/README.md" | sed '1d;$d' | tr -s '[:space:]' ' ' >"$work/shown"
    [ -s "$work/shown" ] && [ "$(cat "$work/written")" = "$(sed 's/ $//' "$work/shown")" ]
    check "the words of the README's first screen"
elif [ "${AKUNU_REQUIRE_MODEL:-}" = 1 ]; then
    false
    check "$real is required and absent"
else
    echo "skipped: no $real"
fi

finish test_cli
