#!/bin/sh
# akunu-cli advise: sizes are those of the files that quantize writes and of what a load takes, the
# commands that it prints run, and what does not fit is said. $AK_CLI, $AK_TEST_DATA,
# $AK_TEST_SOURCE: as in test_cli.sh.
. "${AK_TEST_SOURCE:?}/tests/apps/cli/checks.sh"
export AKUNU_THREADS=1
model=$data/models/llama-f32.gguf

# field TYPE NAME: a number of a type in the last JSON.
field() {
    sed 's/{"type"/\n{"type"/g' "$out" | grep "^{\"type\": \"$1\", \"as_it_is\": false" | grep -o "\"$2\": [0-9]*" | sed 's/.* //'
}
# number NAME: of the last JSON.
number() {
    grep -o "\"$1\": [0-9]*" "$out" | head -n 1 | sed 's/.* //'
}

# ---- Sizes ----
exits 0 advise "$model" --memory 1G -c 64 --json
cp "$out" "$work/advice"
for type in Q8_0 Q4_0 Q4_1 Q5_0 IQ4_NL Q4_K_M Q2_K; do
    exits 0 quantize "$model" "$work/$type.gguf" --type $type --overwrite
    cp "$work/advice" "$out"
    expected=$(field $type file_bytes) weights=$(field $type weight_bytes)
    [ "$(wc -c <"$work/$type.gguf")" = "$expected" ]
    check "$type: the file has $(wc -c <"$work/$type.gguf") bytes, expected $expected"
    exits 0 cache show "$work/$type.gguf" --json
    least=$(($(number packed_bytes) + $(number in_place_bytes)))
    [ "$least" -gt 0 ] && [ "$weights" -ge "$least" ] && [ "$weights" -le $((least + 65536)) ]
    check "$type: $weights bytes of weights, of which a load packs or maps $least"
done
cp "$work/advice" "$out"
[ "$(field Q4_0 memory_bytes)" -eq $(($(field Q4_0 weight_bytes) + $(field Q4_0 kv_bytes) + $(field Q4_0 scratch_bytes))) ]
check "memory is the sum of its parts"
kv=$(field Q4_0 kv_bytes)
exits 0 advise "$model" --memory 1G -c 128 --json
[ "$(field Q4_0 kv_bytes)" -eq $((2 * kv)) ]
check "twice the context takes twice the KV cache"
# without -c the context is the model's, at most 4096
for context in 256 8192; do
    exits 0 advise "$model" --memory 1G --override-kv llama.context_length=int:$context --json
    [ "$(field Q4_0 kv_bytes)" -eq $((kv / 64 * (context < 4096 ? context : 4096))) ]
    check "a model of $context tokens"
done
exits 0 advise "$model" --memory 1G -c 64 -ctk f32 -ctv f32 --json
[ "$(field Q4_0 kv_bytes)" -gt "$kv" ]
check "floats take more"
# a mixture reads the experts that are used
exits 0 advise "$data/models/qwen2moe.gguf" --memory 1G -c 64 --json
[ "$(field Q8_0 token_weight_bytes)" -lt "$(field Q8_0 weight_bytes)" ]
check "a mixture reads a part of its weights for a token"
exits 0 advise "$data/folders/qwen35" --memory 1G -c 64
prints "as it is"

# ---- What is recommended ----
mkdir "$work/bin" "$work/a b"
ln -s "$cli" "$work/bin/akunu-cli"
cp "$model" "$work/a b/it's-f32.gguf"
limit=$(field Q8_0 memory_bytes)
exits 0 advise "$work/a b/it's-f32.gguf" --memory 1G -c 64 --json
limit=$(field Q8_0 memory_bytes)
exits 0 advise "$work/a b/it's-f32.gguf" --memory 1G -c 64
prints "for models trained with as few levels: "
prints "for mixtures of experts: MXFP4_MOE"
exits 0 advise "$work/a b/it's-f32.gguf" --memory "$(awk -v n="$limit" 'BEGIN { printf "%.9f", (n + 1) / 1e9 }')" -c 64
prints "more than "
prints " as it is ("
prints "* Q8_0"
grep '^akunu-cli ' "$out" >"$work/commands"
[ "$(wc -l <"$work/commands")" -eq 1 ] && (cd "$work" && PATH=$work/bin:$PATH sh ./commands) >"$out" 2>"$err"
check "the command runs: $(cat "$work/commands")"
[ -s "$work/it's-q8_0.gguf" ]
check "it made the file"
exits 0 advise "$work/a b/it's-f32.gguf" --memory 1G -c 64 --min-speed 0.001
# a quantized source is taken as it is
exits 0 advise "$work/Q4_0.gguf" --memory 1G -c 64
prints "Q4_0 as it is"
prints "nothing is to be made"
prints "not smaller than the model as it is: "

# ---- What cannot be ----
exits 1 advise "$model" --memory 10K -c 64
says "nothing fits into 0.01 MB: the smallest, "
says "KV cache of 64 tokens"
prints_nothing
exits 1 advise "$model" --memory 1G -c 64 --min-speed 1000000
says "is expected to reach 1e+06 tokens/s: the fastest, "
for bad in "--memory 0" "--memory x" "--memory 1T" "-c 0" "-c x" "--min-speed 0" "--min-speed -1" "-ctk q3" "--cpu pdp11"; do
    # shellcheck disable=SC2086
    exits 2 advise "$model" $bad
    says "${bad%% *}"
done
exits 3 advise "$work/no.gguf"
exits 3 advise "$data/encoders/bert"
says "an encoder"
exits 2 advise "$model" --type Q4_0
says "--type is a flag of 'quantize', not of 'advise'"

finish test_advise
