#!/bin/sh
# Measures of quality: perplexity --save-logits and --kl-base against figures of NumPy, eval against
# the prompts of lm-evaluation-harness and log-likelihoods of transformers.
# $AK_CLI, $AK_TEST_DATA: as in test_cli.sh. tests/golden/divergence.py and
# tests/golden/questions.py made tests/data/quality, and printed the figures below.
. "${AK_TEST_SOURCE:?}/tests/apps/cli/checks.sh"
model=$data/model.gguf llama=$data/models/llama-f32.gguf quality=$data/quality
export AKUNU_THREADS=2

# near LINE COLUMN VALUE...: numbers of an output line, which begins with LINE, within 2 units of
# the last digit.
near() {
    start=$1
    shift
    while [ $# -gt 0 ]; do
        tr -d ',%' <"$out" | awk -v start="$start" -v column="$1" -v want="$2" '
            index($0, start) == 1 {
                d = index(want, "."); unit = d ? 10 ^ -(length(want) - d) : 1; x = ($column - want) / unit
                good = $column != "" && x < 2.5 && x > -2.5
            }
            END { exit !good }'
        check "'$start', column $1, is $2"
        shift 2
    done
}

# ---- KL divergence from a base of llama.cpp's form ----
exits 0 perplexity -m "$llama" -ctk f32 -ctv f32 --kl-base "$quality/base.kld"
near 'perplexity:' 2 4318.84 4 2367.01
near 'perplexity of the base:' 5 4509.82 7 2537.48
near 'change of perplexity:' 4 -4.235 6 7.005
near 'KL median' 3 0.037510 5 0.050008 7 0.073186 9 0.077220 11 0.077668
near 'top-1:' 2 68.421 4 10.956
near 'top-5:' 2 100.000 4 0.000
near 'KL:' 2 0.038142 4 0.003174 6 68.421
cp "$out" "$work/kl"
exits 0 perplexity -m "$llama" -ctk f32 -ctv f32 --kl-base "$quality/base.kld" -b 7 -t 1 -c 40
cmp -s "$out" "$work/kl"
check "the divergence depends neither on the batch nor on threads"
grep -q '^KL: [0-9.]* ± [0-9.]*, top-1 [0-9.]* %$' "$out"
check "the last line is as scripts expect it"
exits 0 perplexity -m "$llama" --kl-base "$quality/base.kld" --json
prints '"kl": {"mean": '
exits 2 perplexity -m "$llama" --kl-base "$quality/base.kld" -f "$quality/base.kld"
says "-f has no effect with --kl-base"
exits 2 perplexity -m "$llama" --kl-base "$quality/base.kld" -c 64
says "have 40 tokens"
exits 2 perplexity -m "$llama" --kl-base "$work/absent"
says "absent"
exits 2 perplexity -m "$llama" --kl-base "$work"
says "not a regular file"

# A file that is not what it says: cut, longer, of another form, of another vocabulary.
broken() {
    exits "$1" perplexity -m "$llama" --kl-base "$work/broken.kld"
    says "$2"
    prints_nothing
}
size=$(wc -c <"$quality/base.kld")
head -c $((size - 1)) "$quality/base.kld" >"$work/broken.kld"
broken 1 "take $size"
{ cat "$quality/base.kld" && printf x; } >"$work/broken.kld"
broken 1 "it has $((size + 1)) bytes"
head -c 12 "$quality/base.kld" >"$work/broken.kld"
broken 1 "no file of base logits"
: >"$work/broken.kld"
broken 1 "no file of base logits"
{ printf '_logots_' && tail -c +9 "$quality/base.kld"; } >"$work/broken.kld"
broken 1 "no file of base logits"
# patched OFFSET BYTES: the base with some bytes replaced.
patched() {
    cp "$quality/base.kld" "$work/broken.kld"
    chmod u+w "$work/broken.kld"
    # The bytes are escapes of printf.
    # shellcheck disable=SC2059
    printf "$2" | dd of="$work/broken.kld" bs=1 seek="$1" conv=notrunc 2>"$work/dd"
}
patched 8 '\377\377\377\377'
broken 1 "1 chunks of 4294967295 tokens"
patched 8 '\000\000\000\000'
broken 1 "at least 4"
patched 12 '\377\377\377\377'
broken 1 "its vocabulary has 4294967295 tokens"
patched 16 '\377\377\377\377'
broken 1 "4294967295 chunks"
patched 20 '\377\377\377\177'
broken 2 "2147483647 is not a token"
patched 180 '\000\000\300\177'
broken 1 "record 0: scale nan"
patched 184 '\000\000\200\177'
broken 1 "least log-probability inf"

# ---- A base of our own ----
awk 'BEGIN { for (i = 0; i < 600; i++) printf "the %d. house, ", i * 7919 % 1000 }' >"$work/long"
exits 0 perplexity -m "$model" -f "$work/long" -c 64 --chunks 3 --save-logits "$work/own.kld"
cp "$out" "$work/perplexity"
exits 0 perplexity -m "$model" --kl-base "$work/own.kld"
head -n 1 "$out" | cmp -s - "$work/perplexity"
check "the text of the base has its perplexity"
grep -q 'top-1 100.000 %' "$out" && awk '/^KL:/ { exit !($2 < 2e-5 && $2 > -2e-5) }' "$out"
check "a model is at no distance from itself"
near 'perplexity of the base:' 5 "$(awk '{ printf "%.1f", $2 }' "$work/perplexity")"
exits 0 perplexity -m "$model" --kl-base "$work/own.kld" --chunks 2
prints "(2 chunks of 64)"
exits 2 perplexity -m "$model" --kl-base "$work/own.kld" --save-logits "$work/other.kld"
says "exclude each other"
exits 2 perplexity -m "$model" -f "$work/long" -c 64 --save-logits "$work"
says "not a regular file"
exits 1 perplexity -m "$model" -f "$work/long" -c 64 --save-logits "$work/no/such.kld"
says "such.kld"
cp "$work/own.kld" "$work/copy.kld"
(ulimit -f 16 && "$cli" perplexity -m "$model" -f "$work/long" -c 64 --save-logits "$work/own.kld" --no-cache) >"$out" 2>"$err"
[ $? -eq 1 ] && cmp -s "$work/own.kld" "$work/copy.kld" && [ "$(echo "$work"/own.kld*)" = "$work/own.kld" ]
check "a file that cannot be written whole leaves the old one, and nothing else"

# ---- A page ----
exits 0 report "$model" "$model" --base "$model" -f "$work/long" -c 64 --chunks 2 -o "$work/page.html"
[ "$(grep -c '<circle' "$work/page.html")" -eq 4 ] && [ "$(grep -c '<tr><th scope="row">model.gguf</th>' "$work/page.html")" -eq 2 ]
check "two plots with two points each, and a table of two rows"
grep -qE '(src|href)=|<script|@import|url\(' "$work/page.html"
[ $? -eq 1 ]
check "the page needs no other file"
[ "$(echo "$work"/page.html*)" = "$work/page.html" ]
check "the base's logits are removed"
mkdir "$work/a&b<c"
cp "$model" "$work/a&b<c/d&<e.gguf"
exits 0 report "$work/a&b<c/d&<e.gguf" --kl-base "$work/own.kld" -o "$work/page.html"
grep -q '<th scope="row">d&amp;&lt;e.gguf</th>' "$work/page.html"
check "names are text"
exits 2 report "$model" -o "$work/none.html"
says "expected one of --base MODEL"
exits 2 report --kl-base "$work/own.kld" -o "$work/none.html"
says "no models are given"
exits 2 report "$model" --kl-base "$work/own.kld"
says "-o report.html"
exits 3 report "$model" "$work/absent.gguf" --kl-base "$work/own.kld" -o "$work/none.html"
says "absent.gguf"
[ ! -e "$work/none.html" ]
check "no page without all figures"

# ---- eval: prompts ----
exits 0 eval -m "$llama" -ctk f32 -ctv f32 --tasks "$quality/questions.jsonl" --save "$work/results.jsonl"
grep -q '^accuracy: 0\.[0-9]* ± 0\.[0-9]* (12 questions)$' "$out"
check "the last line is as scripts expect it"
cp "$out" "$work/accuracy"
sed 's/,"logprob":[^,]*,"tokens":[0-9]*//g' "$work/results.jsonl" | cmp - "$quality/prompts.jsonl" >"$out" 2>&1
check "contexts and choices are those of lm-evaluation-harness"
sed -n '12s/.*"logprob":\([^,]*\),"tokens":18},.*"logprob":\([^,]*\),"tokens":8}.*/\1 \2/p' "$work/results.jsonl" >"$out"
awk '{ x = $1 + 145.573862; y = $2 + 68.086283; good = x * x < 1e-6 && y * y < 1e-6 } END { exit !good }' "$out"
check "log-likelihoods as transformers' logits give them"
for flags in "-b 7" "-c 120" "-t 1"; do
    # Two words.
    # shellcheck disable=SC2086
    exits 0 eval -m "$llama" -ctk f32 -ctv f32 --tasks "$quality/questions.jsonl" --save "$work/same.jsonl" $flags
    cmp -s "$work/results.jsonl" "$work/same.jsonl"
    check "log-likelihoods do not depend on $flags"
done

# ---- eval: results ----
exits 0 eval -m "$llama" -ctk f32 -ctv f32 --tasks "$quality/questions.jsonl" --base "$work/results.jsonl"
prints "accuracy, difference to it: +0.0000 ± 0.0000"
tail -n 2 "$out" | cmp -s - "$work/accuracy"
check "a base does not change the accuracy"
exits 0 eval -m "$model" --tasks "$quality/questions.jsonl" --base "$llama" --json
prints '"difference": {"accuracy": '
# Right of all questions if it is counted per character, and of none if not: own minus base, of either.
awk 'BEGIN { for (i = 1; i <= 4; i++) print "{\"context\": \"Number " i " is\", \"choices\": [\"a\", \"bbbbbbbbbb\"], \"answer\": 1}" }' >"$work/long.jsonl"
exits 0 eval -m "$model" --tasks "$work/long.jsonl" --save "$work/own.jsonl"
sed 's/"logprob":[^,]*/"logprob":-5.0/2; s/"logprob":[^,]*/"logprob":-1.0/1' "$work/own.jsonl" >"$work/base.jsonl"
exits 0 eval -m "$model" --tasks "$work/long.jsonl" --base "$work/base.jsonl" --json
sed 's/[{},]/\n/g' "$out" | awk '/"(normalized_)?accuracy"/ { x[n++] = $NF } END { exit !(n == 6 && x[2] == 0 && x[3] == 1 && x[4] == x[0] && x[5] == x[1] - 1) }'
check "differences of both accuracies"
exits 0 eval -m "$model" --tasks "$work/long.jsonl" --base "$work/base.jsonl"
prints "normalized accuracy of the base: 1.0000 ± 0.0000"
prints "normalized accuracy, difference to it: -0.5000 ± 0.2887"
# A blank at the end of a context belongs to the choice, as in lm-evaluation-harness.
printf '{"context": "There was a ", "choices": ["keeper", "stone"], "answer": 0}\n' >"$work/blank.jsonl"
printf '{"context": "There was a", "choices": [" keeper", " stone"], "answer": 0}\n' >"$work/no-blank.jsonl"
for name in blank no-blank; do
    exits 0 eval -m "$model" --tasks "$work/$name.jsonl" --save "$work/$name.results"
    grep -o '"logprob":[^}]*' "$work/$name.results" >"$work/$name.logprobs"
done
[ "$(grep -c tokens "$work/blank.logprobs")" = 2 ] && cmp "$work/blank.logprobs" "$work/no-blank.logprobs" >"$out" 2>&1
check "a blank at the end of a context is the choice's"
# Of choices with the same score the first one is taken, as in lm-evaluation-harness.
for answer in 0 1; do
    printf '{"context": "There was a", "choices": [" keeper", " keeper"], "answer": %s}\n' $answer >"$work/tie.jsonl"
    exits 0 eval -m "$model" --tasks "$work/tie.jsonl" --json
    prints "\"accuracy\": $((1 - answer)).0"
    prints "\"normalized_accuracy\": $((1 - answer)).0"
done
awk 'BEGIN { for (i = 1; i <= 100; i++) print "{\"context\": \"Number " i " is\", \"choices\": [\"a\", \"bb\"], \"answer\": " i % 2 "}" }' >"$work/many.jsonl"
exits 0 eval -m "$model" --tasks "$work/many.jsonl" --limit 40
# Either choice is right in half of the questions: their standard error is at most 0.5/√39.
awk '/^accuracy/ { exit !($2 >= 0 && $2 <= 1 && $4 <= 0.0802 && $5 == "(40") }' "$out"
check "40 of 100 questions"

# The token before each text may be the first of the vocabulary.
for adds in true false; do
    exits 0 eval -m "$model" --tasks "$work/many.jsonl" --limit 4 --save "$work/adds-$adds" \
        --override-kv tokenizer.ggml.bos_token_id=int:0 --override-kv tokenizer.ggml.add_bos_token=bool:$adds
done
! cmp -s "$work/adds-true" "$work/adds-false"
check "token 0 precedes the texts"

# ---- eval: what is not a question ----
bad() {
    printf '%s\n' "$1" >"$work/bad.jsonl"
    exits 1 eval -m "$model" --tasks "$work/bad.jsonl"
    says "$2"
    prints_nothing
}
bad '{"question": "Why?", "options": ["a", "b"]}' 'its keys are question, options; expected one of: activity_label, ctx_a'
bad '{}' 'its keys are none'
bad '[]' 'the line is a list'
bad '{"question": "Why?"' 'no valid JSON'
bad '{"question": 1, "choices": ["a", "b"], "answer": 0}' '"question" is a number; expected a string'
bad '{"question": "Why?", "choices": ["a", "b"], "answer": 2}' '0 to 1'
bad '{"question": "Why?", "choices": ["a"], "answer": 0}' 'expected a list of 2 to 64 strings'
bad '{"question": "Why?", "choices": ["a", ""], "answer": 0}' 'choice 2 is empty'
bad '{"question": "Why?", "choices": {"text": ["a", "b"], "label": ["A"]}, "answerKey": "A"}' 'choices.label'
bad '{"question": "Why?", "choices": {"text": ["a", "b"], "label": ["A", "B"]}, "answerKey": "C"}' 'no choice has that label'
bad '{"sentence": "No gap.", "option1": "a", "option2": "b", "answer": "1"}' 'has no _'
bad '{"sentence": "A _.", "option1": "a", "option2": "b", "answer": ""}' 'have no answers'
bad '' 'no questions'
exits 2 eval -m "$model"
says "--tasks FILE is missing"
exits 2 eval -m "$model" --tasks "$work/absent.jsonl"
says "absent.jsonl"
exits 1 eval -m "$llama" --tasks "$quality/questions.jsonl" -c 10
says "the context holds 10"
exits 1 eval -m "$model" --tasks "$quality/questions.jsonl" --base "$work/many.jsonl" --limit 3
says "no result of the question of"
head -n 2 "$work/results.jsonl" >"$work/short.jsonl"
exits 1 eval -m "$model" --tasks "$quality/questions.jsonl" --base "$work/short.jsonl"
says "results of 2 questions"

finish test_quality
