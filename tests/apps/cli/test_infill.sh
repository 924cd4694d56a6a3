#!/bin/sh
# infill: the text that fills the gap between two others.
# $AK_CLI, $AK_TEST_DATA, $AK_TEST_SOURCE: as in test_cli.sh. The tiny model has three control
# tokens, which --override-kv makes the markers of prefix, suffix and middle.
. "${AK_TEST_SOURCE:?}/tests/apps/cli/checks.sh"
model=$data/model.gguf
keys=tokenizer.ggml
fim="--override-kv $keys.fim_pre_token_id=int:414 --override-kv $keys.fim_suf_token_id=int:413 --override-kv $keys.fim_mid_token_id=int:415"
old="--override-kv $keys.prefix_token_id=int:414 --override-kv $keys.suffix_token_id=int:413 --override-kv $keys.middle_token_id=int:415"
pre='<|im_start|>' suf='<|endoftext|>' mid='<|im_end|>'
short="-n 8 --temp 0"

# continues PROMPT: what the model writes after a prompt with its markers written out.
continues() {
    printf '%s' "$1" >"$work/prompt"
    # shellcheck disable=SC2086
    exits 0 run --raw -m "$model" -f "$work/prompt" --no-bos --no-display-prompt --no-escape $short
    cp "$out" "$work/expected"
}
is_expected() {
    cmp -s "$out" "$work/expected"
    check "$1"
}

# shellcheck disable=SC2086
{
    # ---- The middle alone, after the prompt in the order of the family ----
    continues "${pre}int add(${suf}return a;${mid}"
    exits 0 infill -m "$model" $fim --in-prefix "int add(" --in-suffix "return a;" $short
    is_expected "prefix, suffix, middle; only the middle is printed"
    exits 0 infill $fim "$model" --in-prefix "int add(" --in-suffix "return a;" $short
    is_expected "the model needs no flag"
    exits 0 infill -m "$model" $old --in-prefix "int add(" --in-suffix "return a;" $short
    is_expected "the names of older files"
    exits 0 infill -m "$model" $fim --in-prefix "int add(" --in-suffix "return a;" $short --json
    grep -qF '"text": ' "$out" && grep -qF '"stop": "length"' "$out"
    check "--json"
    exits 0 infill -m "$model" $fim --in-prefix "int add(" --in-suffix "return a;" $short -np 2
    prints "--- 2, seed"
    continues "${suf}return a;${pre}int add(${mid}"
    exits 0 infill -m "$model" $fim --in-prefix "int add(" --in-suffix "return a;" $short --spm-infill
    is_expected "--spm-infill: the suffix first"
    continues "${pre}int add(${suf}${mid}"
    exits 0 infill -m "$model" $fim --in-prefix "int add(" $short
    is_expected "no suffix"
    continues "${pre}${suf}return a;${mid}"
    exits 0 infill -m "$model" $fim --in-suffix "return a;" $short
    is_expected "no prefix"

    # ---- Files are read as they are ----
    printf 'puts("\\n");\n' >"$work/head.c"
    printf '\n}\n' >"$work/tail.c"
    continues "${pre}$(cat "$work/head.c")
${suf}
}
${mid}"
    exits 0 infill -m "$model" $fim --in-prefix-file "$work/head.c" --in-suffix-file "$work/tail.c" $short
    is_expected "backslashes and final newlines of files stay"
    "$cli" infill -m "$model" $fim --in-prefix-file - --in-suffix-file "$work/tail.c" $short <"$work/head.c" >"$out" 2>"$err"
    is_expected "the prefix through a pipe"
    "$cli" infill -m "$model" $fim --in-prefix-file "$work/head.c" --in-suffix-file - $short <"$work/tail.c" >"$out" 2>"$err"
    is_expected "the suffix through a pipe"
    exits 0 infill -m "$model" $fim --in-prefix 'puts("\\n");\n' --in-suffix '\n}\n' $short
    is_expected "escapes in texts of the command line"
    exits 0 infill -m "$model" $fim --in-prefix "$(cat "$work/head.c")
" --in-suffix-file "$work/tail.c" $short --no-escape
    is_expected "--no-escape"
    printf '%s' "a ${pre}b" >"$work/markers.c"
    exits 0 tokenize -m "$model" --ids --no-bos --no-parse-special -f "$work/markers.c"
    n=$(wc -w <"$out")
    exits 0 infill -m "$model" $fim --in-prefix-file "$work/markers.c" -n 1 --json
    prints "\"n_prompt\": $((n + 3)),"

    # ---- A context that is too small ----
    i=0
    while [ $i -lt 100 ]; do
        printf 'x = %d;\n' $i >>"$work/long.c"
        i=$((i + 1))
    done
    exits 0 infill -m "$model" $fim --in-prefix-file "$work/long.c" --in-suffix-file "$work/long.c" -c 64 -n 8 --json
    says "the context holds 64 tokens: left out are the first "
    prints '"n_prompt": 56,'
    [ "$(grep -c 'left out' "$err")" -eq 1 ]
    check "in one line"
    exits 0 infill -m "$model" $fim --in-prefix-file "$work/long.c" -c 64 --json
    prints '"n_prompt": 48,'
    exits 0 infill -m "$model" $fim --in-prefix "x" --in-suffix "y" -c 64 -n 8
    ! grep -q "left out" "$err"
    check "nothing is said of texts that fit"

    # ---- What is refused ----
    exits 3 infill -m "$model" --in-prefix x --in-suffix y
    says "no tokens for fill-in-the-middle: neither the metadata tokenizer.ggml.fim_pre_token_id"
    says "<|fim_prefix|>, <fim_prefix>"
    prints_nothing
    exits 2 infill -m "$model" $fim
    says "--in-prefix-file FILE"
    exits 2 infill -m "$model" $fim --in-prefix "" --in-suffix ""
    says "both empty"
    exits 2 infill -m "$model" $fim --in-prefix x --in-prefix-file "$work/head.c"
    says "only one of them"
    exits 2 infill -m "$model" $fim --in-prefix-file - --in-suffix-file -
    says "only one of them can be standard input"
    exits 2 infill -m "$model" $fim --in-prefix-file "$work/none.c"
    says "cannot read --in-prefix-file $work/none.c"
    exits 2 infill -m "$model" $fim --in-prefix x -r ""
    says "-r"
    exits 2 infill -m "$model" $fim --in-prefix x -cnv
    says "-cnv"

    # ---- convert keeps the ids of a GGUF file, and writes those that a folder's tokens have ----
    exits 0 convert -m "$model" $fim --outfile "$work/fim.gguf"
    continues "${pre}x${suf}y${mid}"
    exits 0 infill -m "$work/fim.gguf" --in-prefix x --in-suffix y $short
    is_expected "the converted file fills gaps as well"
    mkdir "$work/folder"
    cp "$data/folders/qwen35/config.json" "$data/folders/qwen35/model.safetensors" "$work/folder"
    added='{"content": "<|fim_prefix|>", "special": false, "id": 4}, {"content": "<|fim_suffix|>", "special": false, "id": 5},
        {"content": "<|fim_middle|>", "special": false, "id": 6}, {"content": "<|file_sep|>", "special": false, "id": 7}'
    echo '{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "dd": 8}, "merges": ["d d"]}, "added_tokens": ['"$added"'],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "decoder": {"type": "ByteLevel"}}' >"$work/folder/tokenizer.json"
    exits 0 infill -m "$work/folder" --in-prefix ab --in-suffix cd -n 0 --json
    prints '"n_prompt": 7,'
    exits 0 convert -m "$work/folder" --pre gpt-2 --outfile "$work/folder.gguf"
    exits 0 inspect -m "$work/folder.gguf" --json
    prints '"tokenizer.ggml.fim_pre_token_id": 4'
    prints '"tokenizer.ggml.fim_suf_token_id": 5'
    prints '"tokenizer.ggml.fim_mid_token_id": 6'
    prints '"tokenizer.ggml.fim_sep_token_id": 7'
    ! grep -q "fim_rep_token_id" "$out"
    check "and no other"
    exits 0 infill -m "$work/folder.gguf" --in-prefix ab --in-suffix cd -n 0 --json
    prints '"n_prompt": 7,'
}

finish test_infill
