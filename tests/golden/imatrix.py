#!/usr/bin/env python3
"""Writes tests/data/imatrix: importance matrices of small models, as llama-imatrix makes them.

    imatrix.py LLAMA_IMATRIX DATA  (needs gguf and numpy from PyPI; LLAMA_IMATRIX: llama.cpp's program; DATA: tests/data)

The text is CHUNKS chunks of CHUNK random characters from "!" to "Z", which are the tokens 0 to 57 of each model here: those without
a vocabulary get one. tests/conversion/convert/test_importance.c makes the same tokens. Weights become F32, since llama.cpp rounds the activations
beside BF16. The file `old.dat` is the older form of model.gguf.
"""
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf

CHUNK, CHUNKS = 32, 4
MODELS = ["qwen2", "mixtral", "qwen2moe", "gpt-oss", "lfm2", "qwen3next", "qwen35moe"]


def text():
    state, out = 1, []
    for _ in range(CHUNK * (CHUNKS + 1)):
        state = (state * 1664525 + 1013904223) % 2**32
        out.append(chr(33 + (state >> 16) % 58))
    return "".join(out)


def rewrite(source, path):
    """The model with float32 weights and a vocabulary of characters."""
    reader = gguf.GGUFReader(source)
    value = lambda key: reader.fields[key].contents()
    writer = gguf.GGUFWriter(path, value("general.architecture"))
    has_vocabulary = value("tokenizer.ggml.model") != "none"
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key in ("general.architecture", "general.file_type"):
            continue
        if key.startswith("tokenizer.") and not has_vocabulary:
            continue
        writer.add_key_value(key, field.contents(), field.types[0], field.types[-1] if len(field.types) > 1 else None)
    if not has_vocabulary:
        tokens = [chr(c) for c in range(33, 127)] + ["Ġ", "Ċ"]
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_list(tokens)
        writer.add_token_types([1] * len(tokens))
        writer.add_token_merges(["! !"])
        writer.add_add_bos_token(False)
    for tensor in reader.tensors:
        shape = [int(n) for n in reversed(tensor.shape)]
        writer.add_tensor(tensor.name, gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape(shape).astype("<f4"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main(program, data):
    out = data / "imatrix"
    out.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "text").write_text(text())
        run = [program, "-m", "model.gguf", "-f", "text", "-c", str(CHUNK), "-b", str(CHUNK), "--chunks", str(CHUNKS), "--process-output",
               "--no-ppl", "-ctk", "f32", "-ctv", "f32", "-fa", "off", "-t", "1"]
        for name in MODELS:
            rewrite(data / "models" / (name + ".gguf"), folder / "model.gguf")
            for form, file in [("gguf", name + ".gguf")] + [("dat", "old.dat")] * (name == "qwen2"):
                done = subprocess.run(run + ["-o", str(out.resolve() / file), "--output-format", form], cwd=folder, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT)
                if done.returncode != 0:
                    sys.exit("%s: %s" % (name, done.stdout.decode()[-2000:]))


main(sys.argv[1], Path(sys.argv[2]))
