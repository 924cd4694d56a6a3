#!/bin/sh
# --quantize: a model that is quantized while it is loaded gives the bits of the file of
# 'akunu-cli quantize'. $AK_CLI, $AK_TEST_DATA, $AK_TEST_SOURCE: as in test_cli.sh.
. "${AK_TEST_SOURCE:?}/tests/apps/cli/checks.sh"

for source in llama-f32 gemma3 gpt-oss gpt2; do
    ids=$(sed -n 's/^prompt [0-9]* //p' "$data/models/$source.txt")
    for type in q8_0 Q4_K_M iq4_xs q2_k; do
        model=$data/models/$source.gguf
        "$AK_CLI" quantize "$model" "$work/q.gguf" --type $type > /dev/null 2>&1 || exit 1
        logits online --quantize $type --no-cache
        logits built --quantize $type
        logits mapped --quantize $type
        model=$work/q.gguf
        logits file --no-cache
        same online file
        same built file
        same mapped file
        rm "$work/q.gguf"
    done
done

exits 2 logits -m "$data/models/llama-f32.gguf" --ids 1 --out "$work/x.npy" --quantize none
says "no type or mix is called 'none'"
"$AK_CLI" quantize "$data/models/llama-f32.gguf" "$work/q.gguf" --type q8_0 > /dev/null 2>&1
exits 2 logits -m "$work/q.gguf" --ids 1 --out "$work/x.npy" --quantize q4_0
says 'is Q8_0 already'
finish test_online
