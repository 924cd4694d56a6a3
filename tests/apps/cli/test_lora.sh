#!/bin/sh
# --lora: adapters by the command. $AK_CLI, $AK_TEST_DATA, $AK_TEST_SOURCE: as in test_cli.sh.
. "${AK_TEST_SOURCE:?}/tests/apps/cli/checks.sh"
model=$data/models/llama-f32.gguf
gguf=$data/adapters/llama.gguf peft=$data/adapters/llama-peft
ids=$(sed -n 's/^prompt [0-9]* //p' "$data/models/llama-f32.txt")

logits plain
logits gguf --lora "$gguf"
logits peft --lora "$peft"
differs gguf plain
differs peft plain
differs peft gguf
logits one --lora "$gguf:1"
same one gguf
logits half --lora "$gguf:0.5"
differs half gguf
logits scaled --lora-scaled "$gguf:5e-1"
same scaled half
logits zero --lora "$gguf:0" --lora "$peft:0"
same zero plain
logits both --lora "$gguf" --lora "$peft:0.5"
logits list --lora "$gguf,$peft:0.5"
differs both gguf
same list both
logits cached --lora "$gguf"
same cached gguf
logits again
same again plain

# a comma or colon in a file's name
cp "$gguf" "$work/a,b.gguf"
cp "$gguf" "$work/c:2"
logits comma --lora "$work/a,b.gguf"
same comma gguf
logits comma_scaled --lora "$work/a,b.gguf:0.5"
same comma_scaled half
logits colon --lora "$work/c:2"
same colon gguf
setting=AKUNU_LORA=$gguf
logits environment
setting=
same environment gguf

exits 3 logits -m "$model" --ids 1 --out "$work/x" --lora "$work/absent.gguf"
says "absent.gguf"
exits 2 logits -m "$model" --ids 1 --out "$work/x" --lora "$gguf:much"
says "SCALE is not a number"
exits 2 logits -m "$model" --ids 1 --out "$work/x" --lora "$gguf,"
exits 2 logits -m "$model" --ids 1 --out "$work/x" --lora "$gguf:inf"
says "expected a finite number"
exits 3 logits -m "$data/models/qwen2.gguf" --ids 1 --out "$work/x" --lora "$gguf"
says 'llama.gguf: an adapter for the architecture "llama"; the model has "qwen2"'
exits 3 logits -m "$model" --ids 1 --out "$work/x" --lora "$model"
says 'general.type is'

# a draft model has no adapters
exits 0 run --raw -m "$model" -md "$model" -p x -n 8 --temp 0 --lora "$gguf"
finish test_lora
