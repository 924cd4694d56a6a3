#!/bin/sh
# The JSON of every command against its schema in docs/schemas, and akunu-cli chat.
# $AK_CLI, $AK_TEST_DATA, $AK_TEST_MODELS: as in test_cli.sh. The schemas are checked by
# grammar-check, and each has to refuse the same output with a field too many. What python3 reads
# is skipped where there is none.
. "${AK_TEST_SOURCE:?}/tests/apps/cli/checks.sh"
source=$AK_TEST_SOURCE
model=$data/model.gguf
real=${AK_TEST_MODELS:-/nonexistent}/SmolLM2-135M-Instruct.Q4_1.gguf
schemas=$source/docs/schemas
export AKUNU_THREADS=1

python3 -c '' 2>/dev/null && python=python3 || python=
[ -n "$python" ] || [ "${AKUNU_REQUIRE_TOOLS:-}" != 1 ] || { echo "FAIL: no python3, which AKUNU_REQUIRE_TOOLS=1 requires"; exit 1; }
[ -n "$python" ] || echo "SKIPPED: test_json: what python3 reads"

# matches FILE SCHEMA, refuses FILE SCHEMA. In some shells a command in the argument of `check`
# would replace the status that it looks at.
matches() {
    "$cli" grammar-check -j "$schemas/$2.json" -f "$1" >"$work/matched" 2>&1
    matched=$? said=$(cat "$work/matched")
    [ $matched -eq 0 ]
    check "${1##*/} matches docs/schemas/$2.json: $said"
}
refuses() {
    "$cli" grammar-check -j "$schemas/$2.json" -f "$1" >"$work/matched" 2>&1
    matched=$? said=$(head -c 200 "$1")
    [ $matched -eq 1 ]
    check "docs/schemas/$2.json refuses: $said"
}

# valid SCHEMA: standard output is JSON of that schema, which allows no field more.
valid() {
    echo "$1" >>"$work/seen"
    matches "$out" "$1"
    sed '0,/{/s/{/{"surplus": 1, /' "$out" >"$work/surplus"
    refuses "$work/surplus" "$1"
}

# valid_lines SCHEMA: the same of each line, and there are some.
valid_lines() {
    echo "$1" >>"$work/seen"
    n_lines=0
    while IFS= read -r line; do
        n_lines=$((n_lines + 1))
        printf '%s\n' "$line" >"$work/line"
        matches "$work/line" "$1"
        printf '%s\n' "$line" | sed '0,/{/s/{/{"surplus": 1, /' >"$work/surplus"
        refuses "$work/surplus" "$1"
    done <"$out"
    [ $n_lines -gt 0 ]
    check "there are lines"
}

# holds EXPRESSION...: each of Python, over `v`: standard output; `lines`: each of its lines.
holds() {
    [ -n "$python" ] || return 0
    $python -c 'import json, sys
text = open(sys.argv[1], encoding="utf-8").read()
lines = [json.loads(line) for line in text.splitlines()]
v = lines[0] if len(lines) == 1 else None
def joined(kind): return "".join(line.get(kind, "") for line in lines)
calls = [c for line in lines for c in line.get("tool_calls", [])]
for what in sys.argv[2:]:
    if not eval(what):
        sys.exit("not so: " + what)' "$out" "$@" 2>>"$err"
    held=$? said=$(tail -n 1 "$err")
    [ $held -eq 0 ]
    check "$said"
}

# ---- Commands that need no generation ----
exits 0 models --json
valid models
exits 0 tokenize -m "$model" --json -p 'a "b" ü'
valid tokenize
exits 0 detokenize -m "$model" --json --ids "5 6 7"
valid detokenize
exits 0 inspect -m "$model" --json
valid inspect
exits 0 inspect -m "$data/models/qwen3.gguf" --json --sha256
valid inspect
exits 0 grammar-check --grammar 'root ::= "a"' -p a --json
valid grammar-check
exits 1 grammar-check --grammar 'root ::= "a"' -p b --json
valid grammar-check
printf '{"match": true, "byte": 1}' >"$work/mixed"
refuses "$work/mixed" grammar-check
zero=0000000000000000000000000000000000000000000000000000000000000000
digest=$(sha256sum "$model") && digest=${digest%% *}
printf '{"model": "%s", "prompt": [5], "sampling": {"max_tokens": 0}, "seed": 1, "tokens": [], "chain": "%s"}' \
    "$digest" $zero >"$work/receipt.json"
exits 0 verify -m "$model" "$work/receipt.json" --json
valid verify
sed 's/"tokens": \[\]/"tokens": [7]/' "$work/receipt.json" >"$work/changed.json"
"$cli" verify -m "$model" --json - <"$work/changed.json" >"$out" 2>"$err"
[ $? -eq 1 ]
check "verify - reads standard input"
valid verify
echo '[{"role": "user", "content": "Hi"}]' >"$work/hi.json"
exits 0 apply-template -m "$model" --messages "$work/hi.json" --json
valid apply-template
for file in "$model" "$data/models/gemma.gguf"; do
    exits 0 show -m "$file" --json
    valid show
done
exits 0 list --json
matches "$out" list
mkdir -p "$work/data/akunu/models"
cp "$model" "$work/data/akunu/models/tiny.gguf"
echo none >"$work/data/akunu/models/broken.gguf"
exits 0 list --json
valid list
grep -q '"error"' "$out" && grep -q '"tiny"' "$out"
check "a model that is read, and one that is not"
exits 0 run --list-devices --json
echo list-devices >>"$work/seen"
matches "$out" list-devices
printf '[{"number": 0}]' >"$work/device"
refuses "$work/device" list-devices

# ---- Commands that compute ----
exits 0 embed -m "$model" --json -p x
valid embed
exits 0 embed -m "$model" --json -p x y
valid embed
# A second of silence as WAV: 16,000 samples of 16 bits.
wav() {
    printf 'RIFF\044\175\000\000WAVEfmt \020\000\000\000\001\000\001\000\200\076\000\000\000\175\000\000\002\000\020\000data\000\175\000\000'
    head -c 32000 /dev/zero
}
wav >"$work/silence.wav"
# shellcheck disable=SC2086
${AK_EMULATOR-} "${AK_TEST_BUILD:?}/tests/speech/transcribe/test_transcribe" --write "$work/whisper.bin"
if "$cli" logits -m "$work/whisper.bin" -f "$work/silence.wav" --stage mel --out "$work/mel.npy" 2>&1 | grep -q 'built without'; then
    echo "SKIPPED: test_json: transcribe, which needs libsndfile and libsamplerate"
    printf 'transcribe\ntranscribe-full\ntranscribe-stream\n' >>"$work/seen"
else
    for stage in "mel (80, 3000)" "encoder (1500, 16)" "logits (2, 51864)"; do
        exits 0 logits -m "$work/whisper.bin" -f "$work/silence.wav" --stage "${stage%% *}" --ids "1 2" --out "$work/stage.npy"
        head -c 128 "$work/stage.npy" | grep -qaF "'<f4', 'fortran_order': False, 'shape': ${stage#* }, "
        check "the shape of --stage $stage"
    done
    exits 3 logits -m "$work/whisper.bin" -f "$work/absent.wav" --stage encoder --out "$work/stage.npy"
    [ "$(wc -l <"$err")" -eq 1 ]
    check "one message of a clip that is not there"
    exits 2 logits -m "$work/whisper.bin" -f "$work/silence.wav" --out "$work/stage.npy"
    says "--ids is missing"
    exits 0 transcribe -m "$work/whisper.bin" -nf --json "$work/silence.wav"
    valid transcribe
    says_nothing
    head -c 16044 "$work/silence.wav" >"$work/cut.wav"
    exits 0 transcribe -m "$work/whisper.bin" -bs 1 -nf "$work/cut.wav"
    says 'cut.wav: ends after 0.5 s; its header says 1.0 s'
    { head -c 40 "$work/silence.wav" && printf '\377\377\377\377' && tail -c 32000 "$work/silence.wav"; } >"$work/piped.wav"
    exits 0 transcribe -m "$work/whisper.bin" -bs 1 -nf "$work/piped.wav"
    says_nothing
    mkfifo "$work/clip"
    cat "$work/silence.wav" >"$work/clip" &
    exits 0 transcribe -m "$work/whisper.bin" -bs 1 -nf --json "$work/clip"
    kill $! 2>/dev/null || : # it waits for ever where nothing was read
    valid transcribe
    exits 0 transcribe -m "$work/whisper.bin" -bs 1 -nf --json "$work/silence.wav" -otxt -ovtt -osrt -ocsv -olrc -oj -of "$work/out"
    cmp -s "$out" "$work/out.json"
    check "--output-json writes what --json prints"
    head -n 1 "$work/out.vtt" | grep -qx WEBVTT && head -n 1 "$work/out.csv" | grep -qx 'start,end,text' && [ -f "$work/out.srt" ] && [ -f "$work/out.txt" ] && [ -f "$work/out.lrc" ]
    check "the files of a transcript"
    matches "$source/tests/data/speech/whisper_cpp_full.json" transcribe-full
    for flag in -nt --word-timestamps -oj; do
        exits 0 transcribe -m "$work/whisper.bin" -bs 1 -nf $flag "$work/silence.wav" -ojf -of "$work/full"
        cp "$work/full.json" "$out"
        valid transcribe-full
        holds 'v["model"]["vocab"] == 51864 and v["params"]["language"] == "en"' \
            'all(t["p"] > 0 and t["t_dtw"] == -1 for s in v["transcription"] for t in s["tokens"])' \
            'all(s["offsets"]["from"] <= t["offsets"]["from"] <= t["offsets"]["to"] <= s["offsets"]["to"] for s in v["transcription"] for t in s["tokens"])'
    done
    exits 0 transcribe -m "$work/whisper.bin" -bs 1 -nf --word-timestamps --json "$work/silence.wav"
    valid transcribe
    grep -q '"words"' "$out"
    check "--word-timestamps: segments have words"
    exits 0 transcribe -m "$work/whisper.bin" -bs 1 -nf -ml 1 --highlight-words "$work/silence.wav" -osrt -otsv -ovtt -olrc -of "$work/words"
    [ "$(grep -c . "$out")" -gt 1 ] && [ "$(grep -c -- '-->' "$work/words.srt")" -eq "$(grep -c . "$out")" ]
    check "-ml: a line per word"
    head -n 1 "$work/words.tsv" | grep -qx 'start	end	text' && grep -q '^\[[0-9:.]*\]<[0-9:.]*>' "$work/words.lrc"
    check "tabs, and the times of words"
    exits 0 transcribe -m "$work/whisper.bin" -bs 1 -nf --highlight-words "$work/silence.wav" -ovtt -of "$work/words"
    grep -q '<00:00:[0-9.]*>' "$work/words.vtt"
    check "--highlight-words: times inside a subtitle"
    exits 0 transcribe -m "$work/whisper.bin" -bs 2 -nf -nt -nth 1 --grammar 'root ::= "on" | "off"' "$work/silence.wav"
    grep -qxE 'o(n|ff)' "$out"
    check "--grammar: a text of it"
    # a token is a byte, and a text has room for 32 of them: ten characters and two bytes of another
    exits 0 transcribe -m "$work/whisper.bin" -bs 1 -nf -nt -nth 1 --grammar 'root ::= "安"{20}' "$work/silence.wav" -otxt -osrt -ovtt -ocsv -otsv -olrc -oj -of "$work/half"
    cp "$out" "$work/half.stdout"
    for form in stdout txt srt vtt csv tsv lrc json; do
        [ "$(LC_ALL=C tr -cd '\345\256\211\357\277\275' <"$work/half.$form" | head -c 33)" = '安安安安安安安安安安�' ]
        check ".$form: half a character is U+FFFD"
    done
    exits 0 transcribe -m "$work/whisper.bin" -bs 1 -nf -nt -nth 1 --grammar 'root ::= "安"{20}' "$work/silence.wav" --word-timestamps --json -ojf -of "$work/half"
    grep -q '"word": *"[安 ]*�"' "$out"
    check "--word-timestamps: half a character is U+FFFD"
    grep -q '"text": *"�"' "$work/half.json"
    check "--output-json-full: half a character is U+FFFD"
    printf 'state ::= "on" | "off"\n' >"$work/state.gbnf"
    exits 0 transcribe -m "$work/whisper.bin" -bs 1 -nf -nt -nth 1 --grammar "$work/state.gbnf" --grammar-rule state --hotwords 'light' --hallucination-silence-threshold 2 "$work/silence.wav"
    exits 2 transcribe -m "$work/whisper.bin" --grammar "$work/state.gbnf" "$work/silence.wav"
    says 'no rule "root"'
    exits 2 transcribe -m "$work/whisper.bin" --grammar "$work/none.gbnf" "$work/silence.wav"
    says '"'"$work/none.gbnf"'" is no file that can be read, and no grammar'
    exits 2 transcribe -m "$work/whisper.bin" --grammar-penalty 100 "$work/silence.wav"
    says '--grammar-penalty needs --grammar'
    "$cli" transcribe -m "$work/whisper.bin" --stream --json <"$work/mel.npy" >"$out" 2>"$err"
    check "--stream reads samples"
    valid_lines transcribe-stream
    "$cli" transcribe -m "$work/whisper.bin" --stream <"$work/silence.wav" >"$out" 2>"$err"
    [ $? -eq 1 ]
    check "--stream: a WAV file"
    says 'is a WAV file'
    printf 'fLaC and what follows' | "$cli" transcribe -m "$work/whisper.bin" --stream >"$out" 2>"$err"
    says 'is a FLAC file'
    exits 2 transcribe -m "$work/whisper.bin" --stream "$work/silence.wav"
    says 'reads standard input'
    exits 2 transcribe -m "$work/whisper.bin" --stream -otxt
    says 'writes no files'
    exits 0 transcribe -m "$work/whisper.bin" --vad --json "$work/silence.wav"
    valid transcribe
    grep -q '"segments": *\[\]' "$out"
    check "--vad: silence has no segments"
    exits 3 transcribe -m "$work/whisper.bin" --vad -vm "$work/silence.wav" "$work/silence.wav"
    says 'silence.wav: not a GGML file of a Silero VAD model'
    exits 3 transcribe -m "$work/whisper.bin" --vad -vm "$work/absent.bin" "$work/silence.wav"
    says 'absent.bin'
    exits 0 transcribe -m "$work/whisper.bin" -bs 1 -nf -ac 750 --json "$work/silence.wav"
    valid transcribe
    exits 2 transcribe -m "$work/whisper.bin" -ac 1501 "$work/silence.wav"
    says '1501 positions; the encoder of this model has 1500'
    exits 2 transcribe -m "$work/whisper.bin" --vad -vt 2 "$work/silence.wav"
    says '-vt 2: expected a number from 0 to 1'
    exits 2 transcribe -m "$work/whisper.bin" -l xx "$work/silence.wav"
    says '"xx" is no language'
    exits 2 transcribe -m "$work/whisper.bin" -l Castilian "$work/silence.wav"
    says 'English alone, and the language is "Castilian"'
    exits 1 transcribe -m "$work/whisper.bin" "$work/absent.wav"
    says 'absent.wav'
    exits 1 transcribe -m "$work/whisper.bin" "$work/out.csv"
    says 'out.csv'
    exits 3 transcribe -m "$model" "$work/silence.wav"
    says 'no speech model'
    exits 3 run -m "$work/whisper.bin" -p x
    says "akunu-cli transcribe"
fi
yes 'the cat sat on the mat' | head -n 40 >"$work/text"
exits 0 perplexity -m "$model" -f "$work/text" -c 32 --chunks 2 --json
valid perplexity
exits 0 perplexity -m "$model" -f "$work/text" -c 32 --chunks 2 --save-logits "$work/base.kld"
exits 0 perplexity -m "$model" --kl-base "$work/base.kld" --json
valid perplexity
exits 0 eval -m "$model" --tasks "$data/quality/questions.jsonl" --json
valid eval
exits 0 eval -m "$model" --tasks "$data/quality/questions.jsonl" --base "$model" --json
valid eval
exits 0 bench -m "$model" -p 8 -n 2 -r 2 -t 1 --breakdown --json
valid bench
exits 0 bench -m "$model" -p 0 -n 0 --load -r 1 -o json
valid bench
exits 2 bench --tune --json --profile-out "$work/p.yaml"
says "--json has no effect"
exits 0 run --raw -m "$model" -p "once upon" -n 3 --json --logprobs 2
valid run
exits 0 run -m "$model" --chat-template chatml -p "Hi" -n 3 -np 2 --json
valid run
for id in pre:414 suf:413 mid:415; do
    set -- "$@" --override-kv "tokenizer.ggml.fim_${id%:*}_token_id=int:${id#*:}"
done
exits 0 infill -m "$model" "$@" --in-prefix "int add(" --in-suffix "return a;" -n 3 --json
valid run
exits 0 cache list --json
valid cache-list
exits 0 cache show "$model" --json
valid cache-show
exits 0 cache show "$data/models/mixed.gguf" --json
matches "$out" cache-show
exits 0 cache prune --json
valid cache-prune

# ---- advise ----
exits 0 advise "$model" --memory 1G -c 64 --json
valid advise
exits 1 advise "$model" --memory 10K -c 64 --json
matches "$out" advise

# ---- chat ----
cat >"$work/tools.json" <<'END'
[{"type": "function", "function": {"name": "set_unit", "description": "Sets the unit", "parameters":
  {"type": "object", "properties": {"unit": {"enum": ["°C", "°F"]}}, "required": ["unit"], "additionalProperties": false}}},
 {"type": "function", "function": {"name": "now"}}]
END
# Shows tools, and calls as Hermes models write them.
cat >"$work/hermes.jinja" <<'END'
{% if tools %}<tools>{{ tools|tojson }}</tools> <tool_call></tool_call>{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content or '' }}{% for c in m.tool_calls or [] %}<tool_call>{{ {'name': c.function.name, 'arguments': c.function.arguments}|tojson }}</tool_call>{% endfor %}<|im_end|>
{% endfor %}<|im_start|>assistant
END
chat="chat -m $model --chat-template chatml -s 1"
hermes="chat -m $model --chat-template-file $work/hermes.jinja -s 1 -c 2000 --tools $work/tools.json"

# The two forms of one reply are the same: pieces, joined, are the fields of the object.
# both ARGUMENT...: runs both; $out is the stream, $work/whole.json the object.
both() {
    exits 0 "$@" --json
    valid chat
    cp "$out" "$work/whole.json"
    exits 0 "$@" --json --stream
    valid_lines chat-stream
    holds 'set(lines[-1]) == {"finish_reason", "usage", "timings", "seed"} and not any("usage" in line for line in lines[:-1])' \
        "(joined('content') or None, joined('reasoning') or None, calls, lines[-1]['finish_reason'], lines[-1]['usage']['completion_tokens'], lines[-1]['seed']) == \
         (lambda w: (w['content'] or None, w['reasoning'], w['tool_calls'], w['finish_reason'], w['usage']['completion_tokens'], w['seed']))(json.load(open('$work/whole.json')))"
}
# Two words.
# shellcheck disable=SC2086
{
    both $chat --messages "$work/hi.json" -n 12
    holds 'lines[-1]["finish_reason"] == "length"' 'lines[-1]["usage"]["completion_tokens"] == 12' \
        '(lambda u: u["total_tokens"] == u["prompt_tokens"] + 12)(lines[-1]["usage"])' 'lines[-1]["seed"] == 1'
    both $chat --messages "$work/hi.json" --grammar 'root ::= "<think>Hm, ü.</think>\n\nGrüße, 世界 🙂"'
    holds 'joined("content") == "Grüße, 世界 🙂"' 'joined("reasoning") == "Hm, ü."' 'lines[-1]["finish_reason"] == "stop"' \
        '"\ufffd" not in text' 'len(lines) > 8'
    both $chat --messages "$work/hi.json" --grammar 'root ::= "one, two, three"' -r "two"
    holds 'joined("content") == "one, "' 'lines[-1]["finish_reason"] == "stop"'
    both $chat --messages "$work/hi.json" -j '{"type": "object", "properties": {"a": {"enum": ["ä"]}}, "required": ["a"], "additionalProperties": false}'
    holds 'json.loads(joined("content")) == {"a": "ä"}'

    # Without --json: text, and a line per call; reasoning and all else on standard error.
    exits 0 $chat --messages "$work/hi.json" --grammar 'root ::= "<think>Hm.</think>Yes."'
    prints_line 'Yes\.'
    says "Hm."
    exits 0 $hermes --messages "$work/hi.json" --tool-choice set_unit -r '</tool_call>' -n 200
    prints_line 'set_unit \{ *"unit": *"°[CF]" *\}'
}

# ---- Tools ----
# shellcheck disable=SC2086
{
    both $hermes --messages "$work/hi.json" --tool-choice set_unit -r '</tool_call>' -n 200
    ! grep -q 'content\|tools' "$err"
    check "nothing is said of calls"
    holds 'len(calls) >= 1 and all(c["function"]["name"] == "set_unit" for c in calls)' 'lines[-1]["finish_reason"] == "tool_calls"' \
        'all(json.loads(c["function"]["arguments"])["unit"] in ("°C", "°F") for c in calls)' 'len({c["id"] for c in calls}) == len(calls)'
    exits 0 $hermes --messages "$work/hi.json" --tool-choice required -r '</tool_call>' -n 200 --json
    valid chat
    holds '{c["function"]["name"] for c in v["tool_calls"]} <= {"set_unit", "now"}' 'v["content"] is None' 'v["finish_reason"] == "tool_calls"'
    # A call that -n cuts is none.
    both $hermes --messages "$work/hi.json" --tool-choice set_unit -n 30
    says "a call of set_unit is none"
    holds '"set_unit" in joined("content")' 'calls == []' 'lines[-1]["finish_reason"] == "length"'
    # None: the model is not told.
    exits 0 $hermes --messages "$work/hi.json" --tool-choice none -n 1 --json
    cp "$out" "$work/none.json"
    exits 0 $hermes --messages "$work/hi.json" --tool-choice auto -n 1 --json
    holds "v['usage']['prompt_tokens'] > json.load(open('$work/none.json'))['usage']['prompt_tokens'] + 50"
    # With a schema: a call, or a text of the schema, whichever the model begins.
    quote=$("$cli" tokenize -m "$model" --no-bos --ids -p '"')
    exits 0 $hermes --messages "$work/hi.json" -j '{"const": "é"}' -l "$quote+50" --json
    holds 'v["content"] == "\"é\"" and not v["tool_calls"] and v["finish_reason"] == "stop"'
    exits 0 $hermes --messages "$work/hi.json" -j '{"const": "é"}' -l "$quote-50" -r '</tool_call>' -n 200 --json
    holds 'v["content"] is None and v["tool_calls"] and v["finish_reason"] == "tool_calls"'
    exits 0 $hermes --messages "$work/hi.json" --tool-choice none -j '{"const": "é"}' --json
    holds 'v["content"] == "\"é\"" and v["finish_reason"] == "stop"'
    # Reasoning that the prompt began comes before JSON, and is none of it.
    printf '%s<think>\n' "$(cat "$work/hermes.jinja")
" >"$work/thinking.jinja"
    exits 0 chat -m "$model" --chat-template-file "$work/thinking.jinja" --messages "$work/hi.json" -j '{"const": "é"}' -n 20 -s 1 --json
    holds 'v["reasoning"] and not v["content"]' 'v["finish_reason"] == "length"'
    exits 0 run -m "$model" --chat-template-file "$work/thinking.jinja" -p Hi -j '{"const": "é"}' -n 20 -s 1 --json
    valid run
    holds 'v["reasoning"] and not v["text"]' 'v["stop"] == "length"'
    # The template shows no tools.
    exits 0 chat -m "$model" --chat-template chatml --messages "$work/hi.json" --tools "$work/tools.json" -n 1 --json
    says "does not show tools"
    echo '[]' >"$work/no-tools.json"
    exits 0 $chat --messages "$work/hi.json" --tools "$work/no-tools.json" -n 1 --json
    says_nothing
}

# ---- Conversations ----
# An earlier call and its result; arguments as text and as an object give one prompt.
cat >"$work/called.json" <<'END'
[{"role": "developer", "content": [{"type": "text", "text": "Be"}, {"type": "text", "text": "brief."}]},
 {"role": "user", "content": "Hi"},
 {"role": "assistant", "content": null, "reasoning_content": "Hm.", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "now", "arguments": "{\"a\": 1}"}}]},
 {"role": "tool", "tool_call_id": "a", "content": "12:00"}]
END
sed 's/"{\\"a\\": 1}"/{"a": 1}/; s/developer/system/; s/\[{"type".*\]}/"Be\\nbrief."}/' "$work/called.json" >"$work/plain.json"
# shellcheck disable=SC2086
for file in called plain; do
    exits 0 $hermes --messages "$work/$file.json" -n 8 --no-prompt-cache --json
    valid chat
    cp "$out" "$work/$file.out"
done
grep -q 'Be\\nbrief' "$work/plain.json" && ! grep -q 'developer\|\\"' "$work/plain.json"
check "the two conversations are written differently"
out=$work/called.out holds "all(v[k] == json.load(open('$work/plain.out'))[k] for k in ('content', 'usage', 'tool_calls'))"
out=$work/out
# A reply with a role is a message.
if [ -n "$python" ]; then
    # shellcheck disable=SC2086
    exits 0 $hermes --messages "$work/hi.json" --tool-choice set_unit -n 200 --json
    $python -c 'import json, sys
print(json.dumps([{"role": "user", "content": "Hi"}, {"role": "assistant", **json.load(sys.stdin)}, {"role": "tool", "content": "done"}]))' <"$out" >"$work/on.json"
    # shellcheck disable=SC2086
    exits 0 $hermes --messages "$work/on.json" -n 2 --json
    valid chat
fi
# A template that needs arguments as text gets them so.
printf '%s' "{% for m in messages %}{{ m.content or '' }}{% for c in m.tool_calls or [] %}{{ 'f' + c.function.arguments }}{% endfor %}{% endfor %}" >"$work/text.jinja"
exits 0 chat -m "$model" --chat-template-file "$work/text.jinja" --messages "$work/called.json" -n 1 --json
# Standard input.
# shellcheck disable=SC2086
"$cli" $chat --messages - -n 2 --json <"$work/hi.json" >"$out" 2>"$err"
check "a conversation on standard input"
valid chat

# The prompt cache.
for cached in 0 1; do
    # shellcheck disable=SC2086
    exits 0 $chat --messages "$work/hi.json" -n 6 --prompt-cache "$work/kept.prompt" --json
    valid chat
    holds "(v['usage']['prompt_tokens_details']['cached_tokens'] > 0) == $cached" "v['usage']['cached'] if 'cached' in v['usage'] else True"
    cp "$out" "$work/cached.$cached"
done
out=$work/cached.0 holds "v['content'] == json.load(open('$work/cached.1'))['content']"
out=$work/out

# ---- Ctrl-C ----
# The shell that becomes the program catches it too.
catches_ctrl_c() {
    [ "$(readlink "/proc/$pid/exe")" != "$(readlink /proc/$$/exe)" ] && grep -q '^SigCgt:.*[2367abefABEF]$' /proc/$pid/status
}
# The program has its temporary file open, to which it copies standard input.
spools() {
    find /proc/$pid/fd -lname '*(deleted)' | grep -q .
}
# interrupted CONDITION...: one Ctrl-C once it is true.
interrupted() {
    within 60 "$@"
    check "waits for: $*"
    kill -INT $pid
    wait $pid
    [ $? -eq 130 ]
    check "Ctrl-C ends with 130: after $*"
}
if [ "${AK_EMULATED:-}" != 1 ]; then
    endless="-n 100000000 --ignore-eos -c 100000"
    : >"$out"
    # shellcheck disable=SC2086
    "$cli" $chat --messages "$work/hi.json" $endless --json --stream >"$out" 2>"$err" </dev/null &
    pid=$!
    interrupted test -s "$out"
    tail -n 1 "$out" >"$work/last" && mv "$work/last" "$out"
    valid_lines chat-stream
    holds 'v["finish_reason"] == "cancelled"' 'v["usage"]["completion_tokens"] > 0'
    # shellcheck disable=SC2086
    "$cli" $chat --messages "$work/hi.json" $endless --json >"$out" 2>"$err" </dev/null &
    pid=$!
    interrupted catches_ctrl_c
    valid chat
    holds 'v["finish_reason"] == "cancelled"'
    if [ -f "$work/mel.npy" ]; then # what was read is written still
        mkfifo "$work/spoken"
        exec 9<>"$work/spoken"
        : >"$out"
        "$cli" transcribe -m "$work/whisper.bin" --stream --json <"$work/spoken" >"$out" 2>"$err" 9>&- &
        pid=$!
        head -c 48000 "$work/mel.npy" >&9
        interrupted test -s "$out"
        exec 9>&-
        valid_lines transcribe-stream
        tail -n 2 "$out" | head -n 1 | grep -q '"final": *true' && tail -n 1 "$out" | grep -q '"words": *\[\]'
        check "--stream: Ctrl-C makes all words final"
        exec 9<>"$work/spoken"
        "$cli" transcribe -m "$work/whisper.bin" - <"$work/spoken" >"$out" 2>"$err" 9>&- &
        pid=$!
        head -c 1000 "$work/silence.wav" >&9
        interrupted spools
        exec 9>&-
    fi
fi
# A reader that goes away is no failure; a full disk is one.
# shellcheck disable=SC2086
{ "$cli" $chat --messages "$work/hi.json" -n 100000000 --ignore-eos -c 100000 --json --stream </dev/null 2>"$err"; echo $? >"$work/code"; } | head -n 1 >"$out"
[ "$(cat "$work/code")" -eq 0 ]
check "a closed pipe ends quietly"
! grep -v "more than the 256" "$err" # of the context, which is large lest it be full first
check "a closed pipe is not reported"
if [ -w /dev/full ]; then
    # shellcheck disable=SC2086
    "$cli" $chat --messages "$work/hi.json" -n 2 --json >/dev/full 2>"$err" </dev/null
    [ $? -eq 1 ]
    check "a full disk"
fi

# ---- Mistakes ----
# refused MESSAGE JSON: a conversation that is none.
# shellcheck disable=SC2086
refused() {
    printf '%s' "$2" >"$work/bad.json"
    exits 2 $chat --messages "$work/bad.json" --json
    prints_nothing
    says "--messages $work/bad.json: $1"
}
refused 'line 1, column 6: no valid JSON: ' '[{"a":'
refused 'line 1, column 0: no valid JSON: ' ''
refused 'the JSON is an object; expected a list of messages' '{"messages": []}'
refused 'the JSON is "Hi"; expected a list of messages' '"Hi"'
refused 'the list is empty; expected at least one message' '[]'
refused 'messages[1] is "Hi"; expected an object' '[{"role": "user", "content": "a"}, "Hi"]'
refused 'messages[0].role is nothing; expected system, developer, user, assistant or tool' '[{"content": "a"}]'
refused 'messages[1].role is "robot"; expected system' '[{"role": "user", "content": "a"}, {"role": "robot", "content": "b"}]'
refused 'messages[0].role is the number 7; expected system' '[{"role": 7, "content": "a"}]'
refused 'messages[0].content is nothing; expected a text' '[{"role": "user"}]'
refused 'messages[0].content is null; expected a text' '[{"role": "user", "content": null}]'
refused 'messages[0].content is true; expected a text' '[{"role": "assistant", "content": true}]'
refused 'messages[0].content[1].type is "image_url"; expected text, since images' \
    '[{"role": "user", "content": [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": "a"}}]}]'
refused 'messages[0].content[0].text is nothing; expected a string' '[{"role": "user", "content": [{"type": "text"}]}]'
refused 'messages[0].content[0] is "a"; expected an object' '[{"role": "user", "content": ["a"]}]'
refused 'messages[0].tool_calls is an object; expected a list of calls' '[{"role": "assistant", "tool_calls": {}}]'
refused 'messages[0].tool_calls[0].function.name is nothing' '[{"role": "assistant", "tool_calls": [{"function": {"arguments": {}}}]}]'
refused 'messages[0].tool_calls[0].function.arguments is a list' '[{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": []}}]}]'
refused_tools() {
    printf '%s' "$2" >"$work/bad.json"
    # shellcheck disable=SC2086
    exits 2 $chat --messages "$work/hi.json" --tools "$work/bad.json" --json
    prints_nothing
    says "--tools $work/bad.json: $1"
}
refused_tools 'the JSON is an object; expected a list of functions' '{"type": "function"}'
refused_tools 'line 1, column 1: no valid JSON' '['
refused_tools 'tools[0] is not a function with a name' '[{"type": "function"}]'
refused_tools 'two tools have the name f' '[{"name": "f"}, {"name": "f"}]'
refused_tools '#/properties/a: "uniqueItems" is not supported' '[{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": true}}}}]'
# shellcheck disable=SC2086
{
    exits 2 chat -m "$model" --json
    says "--messages FILE"
    exits 2 chat -m "$model" --messages "$work/nothing.json"
    says "cannot read --messages $work/nothing.json"
    exits 2 $chat --messages "$work/hi.json" --stream
    says "--stream needs --json"
    exits 2 $chat --messages "$work/hi.json" --tool-choice auto
    says "--tool-choice auto needs --tools"
    exits 2 $hermes --messages "$work/hi.json" --tool-choice later
    says "--tool-choice later: expected auto, none, required or the name of a tool: set_unit, now"
    exits 2 $chat --messages - --tools -
    says "only one of them can be standard input"
    exits 2 $chat --messages "$work/hi.json" -p x
    says "-p is a flag of 'run'"
    exits 1 $chat --messages "$work/hi.json" --json -c 2
    prints_nothing
    says "the context holds 2"
    printf '%s' "{{ raise_exception('no ' + messages[0].role) }}" >"$work/refusing.jinja"
    exits 1 chat -m "$model" --chat-template-file "$work/refusing.jinja" --messages "$work/hi.json" --json
    says "no user"
    prints_nothing
    exits 3 chat -m "$work/none.gguf" --messages "$work/hi.json" --json
    prints_nothing
}

# ---- The documentation ----
for file in "$schemas"/*.json; do
    name=$(basename "$file" .json)
    grep -qx "$name" "$work/seen"
    check "an output was checked against $name.json"
    grep -qF "(schemas/$name.json)" "$source/docs/json.md"
    check "docs/json.md has schemas/$name.json"
    # Names of fields: what has a colon and a schema after it.
    for field in $(grep -oE '"[a-z0-9_.]+": \{("type"|"enum"|"const"|"anyOf"|"\$ref")' "$file" | cut -d'"' -f2 | grep -vx items | sort -u); do
        grep -qF "\`$field\`" "$source/docs/json.md"
        check "docs/json.md tells of $field, a field of $name"
    done
done
for command in $("$cli" --help | sed -n '/^Commands/,/^$/s/^  \([a-z-]*\) .*/\1/p'); do
    "$cli" "$command" --help | grep -q -e ' --json ' || continue
    grep -qE "^## (.*, )?$command(, |\$)" "$source/docs/json.md"
    check "docs/json.md has a section on $command"
done
sed -n '/^akunu-cli: --messages/p' "$source/docs/json.md" >"$work/shown"
printf '%s' '[{"role": "user", "content": "a"}, {"role": "robot", "content": "b"}]' >"$work/conversation.json"
(cd "$work" && "$cli" chat -m "$model" --messages conversation.json --json) >"$out" 2>"$err" </dev/null
cmp -s "$err" "$work/shown"
check "the message that docs/json.md shows"

# ---- The real model, where it is present ----
if [ -e "$real" ]; then
    echo '[{"role": "user", "content": "What is the capital of France?"}]' >"$work/france.json"
    both chat -m "$real" --messages "$work/france.json" --temp 0 -s 1 -n 24
    holds 'len(lines) > 4' 'open(sys.argv[1] + ".text", "w", encoding="utf-8").write(joined("content"))'
    cp "$out.text" "$work/streamed" 2>/dev/null
    exits 0 run -m "$real" -p "What is the capital of France?" --temp 0 -n 24 --json
    holds "v['text'] == open('$work/streamed', encoding='utf-8').read()"
    echo '[{"role": "user", "content": "A person as JSON: Ada, 36."}]' >"$work/ada.json"
    both chat -m "$real" --messages "$work/ada.json" --temp 0 -s 1 -n 100 \
        -j '{"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer"}}, "required": ["name", "age"], "additionalProperties": false}'
    holds 'set(json.loads(joined("content"))) == {"name", "age"}'
elif [ "${AKUNU_REQUIRE_MODEL:-}" = 1 ]; then
    false
    check "$real is required and absent"
else
    echo "skipped: no $real"
fi

finish test_json
