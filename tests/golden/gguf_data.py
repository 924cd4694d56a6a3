#!/usr/bin/env python3
"""Writes tests/data/gguf: small GGUF files, damaged ones, and what gguf-py reads in them.

    gguf_data.py FIXTURES OUT        (needs gguf and numpy from PyPI)

good.gguf, good.tensors  a tiny model of the fixtures; its tensors: name, type, shape with rows first, offset, bytes,
                         SHA-256 of the float32 values
malformed.txt            every hostile GGUF of the fixtures as its difference from good.gguf. A line: name, "reject" or
                         "accept", then splices, each OFFSET:REMOVED:HEX with offsets in the new file, left to right;
                         HEX may be HEX+N*HEX+HEX, the middle part N times
kinds.gguf, kinds.txt    metadata of every kind and no tensors; a line: key, index of the element or -, kind, value
split-0000N-of-00003     a model in three parts, the first with metadata alone
"""
import hashlib
import json
import re
import sys
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter
from gguf.quants import dequantize, quantize


def write_tensors(path, parts):
    lines = []
    for part in parts:
        for t in GGUFReader(part).tensors:
            values = dequantize(t.data, t.tensor_type).astype("<f4")
            shape = ",".join(str(int(n)) for n in reversed(t.shape))
            digest = hashlib.sha256(values.tobytes()).hexdigest()
            lines.append(f"{t.name} {t.tensor_type.name} {shape} {int(t.data_offset)} {int(t.n_bytes)} {digest}\n")
    path.write_text("".join(lines))


def hexadecimal(data):
    run = re.search(rb"(.{12})\1{99,}", data, re.DOTALL)
    if not run:
        return data.hex()
    n = len(run[0]) // 12
    return f"{data[:run.start()].hex()}+{n}*{run[1].hex()}+{data[run.end():].hex()}"


def resume(old, new, i, j, window=12):
    """How far to pass in both so that they are alike again, in the cheapest way."""
    best, cost, k = (len(old) - i, len(new) - j), len(old) - i + len(new) - j, 0
    while k < cost and j + k + window <= len(new):
        at = old.find(new[j + k : j + k + window], i, i + cost - k + window)
        if at >= 0 and k + at - i < cost:
            best, cost = (at - i, k), k + at - i
        k += 1
    return best


def splices(old, new):
    i = j = 0
    found = []
    while i < len(old) or j < len(new):
        if i < len(old) and j < len(new) and old[i] == new[j]:
            i, j = i + 1, j + 1
            continue
        removed, inserted = resume(old, new, i, j)
        found.append((j, removed, new[j : j + inserted]))
        i, j = i + removed, j + inserted
    return found


def apply(old, changes):
    new = bytearray(old)
    for offset, removed, data in changes:
        new[offset : offset + removed] = data
    return bytes(new)


def write_malformed(fixtures, out):
    expect = json.loads((fixtures / "expect.json").read_text())
    good = (fixtures / "gguf-good.gguf").read_bytes()
    (out / "good.gguf").write_bytes(good)
    write_tensors(out / "good.tensors", [out / "good.gguf"])
    lines = []
    for path in sorted(fixtures.glob("gguf-*.gguf")):
        new = path.read_bytes()
        changes = splices(good, new)
        assert apply(good, changes) == new, path
        text = "".join(f" {offset}:{removed}:{hexadecimal(data)}" for offset, removed, data in changes)
        lines.append(f"{path.stem.removeprefix('gguf-')} {expect[path.name]}{text}\n")
    (out / "malformed.txt").write_text("".join(lines))


KINDS = [
    ("u8", GGUFValueType.UINT8, [0, 255]),
    ("i8", GGUFValueType.INT8, [-128, 127]),
    ("u16", GGUFValueType.UINT16, [0, 65535]),
    ("i16", GGUFValueType.INT16, [-32768, 32767]),
    ("u32", GGUFValueType.UINT32, [0, 4294967295]),
    ("i32", GGUFValueType.INT32, [-2147483648, 2147483647]),
    ("u64", GGUFValueType.UINT64, [0, 18446744073709551615]),
    ("i64", GGUFValueType.INT64, [-9223372036854775808, 9223372036854775807]),
    ("f32", GGUFValueType.FLOAT32, [0.5, -3.25]),
    ("f64", GGUFValueType.FLOAT64, [0.1, -1e300]),
    ("bool", GGUFValueType.BOOL, [False, True]),
    ("string", GGUFValueType.STRING, ["", "žluťoučký"]),
]


def text_of(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return float(value).hex() if isinstance(value, float) else str(value)


def write_kinds(out):
    path, lines = out / "kinds.gguf", []
    writer = GGUFWriter(path, "kinds")
    lines.append("general.architecture - string kinds\n")
    for name, kind, values in KINDS:
        for i, value in enumerate(values):
            key = f"one.{name}.{i}"
            writer.add_key_value(key, value, kind)
            lines.append(f"{key} - {name} {text_of(value)}\n")
        key = f"many.{name}"
        writer.add_key_value(key, values, GGUFValueType.ARRAY, kind)
        lines += [f"{key} {i} {name} {text_of(value)}\n" for i, value in enumerate(values)]
    strings = [f"{i}" + "x" * (i % 7) for i in range(300)]
    writer.add_array("long.strings", strings)
    lines += [f"long.strings {i} string {s}\n" for i, s in enumerate(strings)]
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    (out / "kinds.txt").write_text("".join(lines))


def write_split(out):
    rng = np.random.default_rng(7)
    writer = GGUFWriter(out / "split.gguf", "llama", split_max_tensors=2, small_first_shard=True)
    writer.add_uint32("llama.block_count", 1)
    for name, rows, cols, kind in [
        ("token_embd.weight", 6, 32, "Q8_0"), ("output_norm.weight", 1, 32, "F32"),
        ("blk.0.attn_q.weight", 4, 32, "Q4_1"), ("blk.0.attn_q.bias", 1, 4, "F32"),
    ]:
        values = rng.standard_normal((rows, cols)).astype(np.float32)
        kind = GGMLQuantizationType[kind]
        if rows == 1:
            writer.add_tensor(name, values.reshape(-1))
        else:
            writer.add_tensor(name, quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    parts = sorted(out.glob("split-*-of-*.gguf"))
    assert len(parts) == 3, parts
    write_tensors(out / "split.tensors", parts)


def main():
    fixtures, out = Path(sys.argv[1]) / "malformed", Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    write_malformed(fixtures, out)
    write_kinds(out)
    write_split(out)


main()
