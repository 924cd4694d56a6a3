#!/usr/bin/env python3
"""What each pre-tokenizer of llama.cpp makes of a few texts, for tests/text/tokenizer/test_tokenizer.c.

    pretokenizers.py LLAMA_TOKENIZE DATA     (gguf)

DATA is tests/data/tokenizer: cuts.gguf is read, rules.tsv written. Its lines: the pre-tokenizer's name, the text (bytes as in the
other tables), the ids. One name a rule of src/text/tokenizer/rules.c that has no table of its own.
"""
import re
import sys
import tempfile
from pathlib import Path

import gguf
from tokenizer import LAST, by_llama_cpp, escape, write_vocabulary

TESTED = {"default", "gpt-2", "smollm", "qwen2", "llama-bpe"}
TEXTS = [
    "It's the THE iPhone don'T we'LL AbC ABCd XMLFile", "1234567 12 123456 a12 1 x1234", "  a\n\n  b \r\n\t c  \u3000/d   ", "!?... (a|b) ,c; $+<=>^~|`",
    "日本の漢字123カタカナ한국어ㄅㄆ々、。", "ÀB Straße ЖИЗНЬ Жизнь ǅa ªʰ", "e\u0301a नमस्ते สวัสดี", "/usr//bin\n/x'S/", "<sentinel:12>IMGIMGABZ    b  c",
    "٣٤٥ Ⅻ ½ x² 𝟘１２３", "a b c! à é\u00a0f\u2028g", "\x85\x00\x01\u200b🙂\ufeff_-", "、a。b…c۔d", "ΑΒγδ'll  'Re'vE",
]


def main(llama_tokenize, data):
    data = Path(data)
    fields = gguf.GGUFReader(data / "cuts.gguf").fields
    tokens = [bytes(fields["tokenizer.ggml.tokens"].parts[i]).decode() for i in fields["tokenizer.ggml.tokens"].data][: -len(LAST)]
    merges = [m.split(" ") for m in fields["tokenizer.ggml.merges"].contents()]
    rules = (Path(__file__).parents[2] / "src/text/tokenizer/rules.c").read_text()
    lines = []
    for name in re.findall(r'^    \{" ([^ "]+)', rules, re.M):
        if name in TESTED:
            continue
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder, "model.gguf")
            write_vocabulary(model, tokens, merges, name)
            for text, ids, *_ in by_llama_cpp(llama_tokenize, model, TEXTS):
                lines.append("\t".join((name, escape(text.encode()), " ".join(map(str, ids)))) + "\n")
    (data / "rules.tsv").write_text("".join(lines))


if __name__ == "__main__":
    main(*sys.argv[1:])
