#!/usr/bin/env python3
"""Writes tests/data/quant: blocks and what gguf-py makes of them.

    quant_data.py OUT [LIBGGML]   (needs gguf and numpy from PyPI; LIBGGML: libggml-base.so of llama.cpp)

TYPE.dequant: some blocks, then their elements as float32.
TYPE.quant: some float32, then the blocks that gguf-py quantizes them to; IQ4_NL's are of LIBGGML.
The number of elements follows from the file's size and the type.
"""
import ctypes
import sys
from pathlib import Path

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize, quantize

# Offsets of the float16 fields of a block: random bytes there would often be
# infinities, whose products with 0 are NaNs of no certain sign.
HALVES = {
    "F32": [], "F16": [0], "BF16": [], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
}
QUANTIZED = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0"]
# Drawn last, so that the files above keep their bytes.
LATER = {"IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": []}


def halves(rng, n):
    """Normal ones of both signs; zero, the least subnormal and the largest come first."""
    values = (rng.standard_normal(n) * np.exp2(rng.integers(-12, 4, n))).astype(np.float16)
    values[: min(n, 4)] = np.array([0.0, -0.0, 6e-8, 65504.0], np.float16)[: min(n, 4)]
    return values


def stored_blocks(rng, name, n_blocks):
    block, size = GGML_QUANT_SIZES[GGMLQuantizationType[name]]
    if name in ("F32", "BF16"):
        values = (rng.standard_normal(n_blocks * block) * 3).astype(np.float32)
        return values.view(np.uint8) if name == "F32" else values.view(np.uint16)[1::2].copy().view(np.uint8)
    blocks = rng.integers(0, 256, (n_blocks, size), dtype=np.uint8)
    for offset in (HALVES | LATER)[name]:
        blocks[:, offset : offset + 2] = halves(rng, n_blocks).view(np.uint8).reshape(n_blocks, 2)
    if name == "MXFP4":
        blocks[:5, 0] = [0, 1, 2, 254, 255]  # the exponents at both ends
    return blocks.reshape(-1)


def floats(rng, n):
    x = rng.standard_normal((n // 32, 32)).astype(np.float32)
    x *= np.exp2(rng.integers(-10, 5, (n // 32, 1))).astype(np.float32)
    x[0] = 0
    x[1] = np.linspace(-127, 127, 32)  # halves of steps for Q8_0
    x[2] = np.abs(x[2])
    x[3] = -np.abs(x[3])
    x[4, 5] = 1e30  # beyond a half
    x[5] = 3.25  # all equal
    x[6] *= np.float32(1e-7)
    return x.reshape(-1)


def write_dequantized(out, rng, name):
    kind = GGMLQuantizationType[name]
    block, size = GGML_QUANT_SIZES[kind]
    n_blocks = 6 if block == 256 else 12 if block == 32 else 256
    blocks = stored_blocks(rng, name, n_blocks)
    values = dequantize(blocks.reshape(1, -1), kind).reshape(-1)
    assert values.dtype == np.float32 and values.size == n_blocks * block
    (out / f"{name}.dequant").write_bytes(blocks.tobytes() + values.tobytes())


def quantize_with_ggml(library, x, name, block_bytes):
    """The reference conversion, which llama.cpp's KV cache uses. It leaves the numbers of a block of zeros open."""
    function = getattr(ctypes.CDLL(library), f"quantize_row_{name}_ref")
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    blocks = np.zeros(x.size // 32 * block_bytes, np.uint8)
    function(x.ctypes.data, blocks.ctypes.data, x.size)
    blocks.reshape(-1, block_bytes)[~x.reshape(-1, 32).any(axis=1)] = 0
    return blocks


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(20250101)
    for name in HALVES:
        write_dequantized(out, rng, name)
    for name in QUANTIZED:
        x = floats(rng, 12 * 32)
        with np.errstate(all="ignore"):
            stored = quantize(x.reshape(1, -1), GGMLQuantizationType[name])
        (out / f"{name}.quant").write_bytes(x.tobytes() + stored.tobytes())
    for name in LATER:
        write_dequantized(out, rng, name)
    x = floats(rng, 12 * 32)
    with np.errstate(all="ignore"):
        stored = quantize(x.reshape(1, -1), GGMLQuantizationType.Q5_1)
    (out / "Q5_1.quant").write_bytes(x.tobytes() + stored.tobytes())
    if len(sys.argv) > 2:
        stored = quantize_with_ggml(sys.argv[2], x, "iq4_nl", 18)
        (out / "IQ4_NL.quant").write_bytes(x.tobytes() + stored.tobytes())


main()
