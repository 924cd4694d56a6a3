#!/usr/bin/env python3
"""Prints the rows of `hashes` in tests/files/quant/test_quant.c: what others make of random blocks.

    quant_hashes.py LIBGGML      (needs gguf and numpy from PyPI; LIBGGML: libggml-base.so of llama.cpp)

Types that gguf-py does not dequantize are dequantized by ggml.
"""
import ctypes
import sys

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

N_BLOCKS = 1024
# The byte with the top bits of the scale: bit 6 is cleared, for no infinity.
TOP = {
    "IQ1_S": 1, "IQ1_M": 55, "IQ2_XXS": 1, "IQ2_XS": 1, "IQ2_S": 1, "IQ3_XXS": 1, "IQ3_S": 1,
    "TQ1_0": 53, "TQ2_0": 65, "NVFP4": None, "Q1_0": 1, "Q2_0": 1, "Q8_K": 3,
}
SIZES = {"Q1_0": (128, 18), "Q2_0": (64, 18), "Q8_K": (256, 292)}
LCG_FACTOR, LCG_TERM, MASK = 6364136223846793005, 1442695040888963407, (1 << 64) - 1


def random_blocks(size, top):
    state, out = size, bytearray()
    for _ in range(N_BLOCKS * size):
        state = (state * LCG_FACTOR + LCG_TERM) & MASK
        out.append(state >> 56)
    blocks = np.frombuffer(bytes(out), np.uint8).reshape(N_BLOCKS, size).copy()
    if top is not None:
        blocks[:, top] &= 0xBF
    return blocks


def fnv1a(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = ((h ^ byte) * 0x100000001B3) & MASK
    return h


def by_ggml(lib, name, blocks, elems):
    out = np.empty(N_BLOCKS * elems, np.float32)
    row = getattr(lib, f"dequantize_row_q{name[1:]}")
    row.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    row(blocks.ctypes.data, out.ctypes.data, out.size)
    return out


def main():
    lib = ctypes.CDLL(sys.argv[1])
    for name, top in TOP.items():
        elems, size = SIZES.get(name) or GGML_QUANT_SIZES[GGMLQuantizationType[name]]
        blocks = random_blocks(size, top)
        if name in SIZES:
            values = by_ggml(lib, name, blocks, elems)
        else:
            values = dequantize(blocks.reshape(1, -1), GGMLQuantizationType[name])
        assert values.dtype == np.float32 and values.size == N_BLOCKS * elems and np.isfinite(values).all()
        print(f"    {{ AK_QUANT_{name}, {-1 if top is None else top}, 0x{fnv1a(values.tobytes()):016x} }},")


main()
