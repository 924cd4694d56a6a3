#!/bin/sh
# Flags of the rotation, with llama.cpp's names. $AK_CLI, $AK_TEST_DATA, $AK_TEST_SOURCE: as in
# test_cli.sh.
. "${AK_TEST_SOURCE:?}/tests/apps/cli/checks.sh"
model=$data/models/llama-f32.gguf
ids=$(sed -n 's/^prompt [0-9]* //p' "$data/models/llama-f32.txt")

logits plain
logits scale --rope-scale 4
logits freq_scale --rope-freq-scale 0.25
logits overridden --override-kv llama.rope.scaling.type=str:linear --override-kv llama.rope.scaling.factor=float:4
differs scale plain
same freq_scale scale
same overridden scale
logits linear --rope-scaling linear --rope-scale 4
same linear scale
logits none --rope-scaling none --rope-scale 4
same none plain
logits unset --rope-scaling model --rope-freq-scale 0 --rope-freq-base 0 --yarn-orig-ctx 0 --yarn-ext-factor -1 \
    --yarn-attn-factor -1 --yarn-beta-slow -1 --yarn-beta-fast -1
same unset plain
logits base --rope-freq-base 1000
logits base_overridden --override-kv llama.rope.freq_base=float:1000
differs base plain
same base base_overridden

yarn="--rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 200"
# shellcheck disable=SC2086
{
    logits yarn $yarn
    differs yarn scale
    for flag in "--yarn-ext-factor 0.5" "--yarn-attn-factor 1.5" "--yarn-beta-slow 0.1" "--yarn-beta-fast 2" "--yarn-orig-ctx 128"; do
        logits other $yarn $flag
        differs other yarn
    done
    logits full $yarn --yarn-ext-factor 0
    same full scale
}
setting=AKUNU_ROPE_SCALE=4
logits environment
setting=
same environment scale

exits 2 logits -m "$model" --ids 1 --out "$work/x" --rope-scale 4 --rope-freq-scale 0.25
says "--rope-scale"
says "--rope-freq-scale"
exits 2 logits -m "$model" --ids 1 --out "$work/x" --rope-scaling longrope
says "--rope-scaling"
exits 2 logits -m "$model" --ids 1 --out "$work/x" --rope-scale 0
says "--rope-scale"
exits 2 logits -m "$model" --ids 1 --out "$work/x" --yarn-beta-fast 0
says "--yarn-beta-fast"
exits 3 logits -m "$data/models/gpt2.gguf" --ids 1 --out "$work/x" --rope-scale 2
says 'gpt2.gguf: the architecture "gpt2" has no rotary positions'

# a draft model keeps its own rotation
exits 0 run --raw -m "$model" -md "$data/models/llama-f32.gguf" -p x -n 8 --temp 0 --rope-scale 4
finish test_rope
