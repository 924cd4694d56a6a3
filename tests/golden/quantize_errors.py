#!/usr/bin/env python3
"""Prints the rows of `errors` in tests/conversion/quantize/test_quantize.c: how well ggml quantizes the rows
that the test makes.

    quantize_errors.py LIBGGML   (needs numpy from PyPI; LIBGGML: libggml-base.so of llama.cpp)

Without importance ggml refuses some types, and gives others weights of its own: types of EVEN get
an importance that is the same for all columns.
"""
import ctypes
import re
import sys

import numpy as np

ROWS, COLS = 64, 512
TYPES = {"Q4_0": "q4_0", "Q4_1": "q4_1", "Q5_0": "q5_0", "Q5_1": "q5_1", "Q8_0": "q8_0", "Q2_K": "q2_K", "Q3_K": "q3_K",
         "Q4_K": "q4_K", "Q5_K": "q5_K", "Q6_K": "q6_K", "IQ4_NL": "iq4_nl", "IQ4_XS": "iq4_xs", "IQ1_S": "iq1_s",
         "IQ1_M": "iq1_m", "IQ2_XXS": "iq2_xxs", "IQ2_XS": "iq2_xs", "IQ2_S": "iq2_s", "IQ3_XXS": "iq3_xxs",
         "IQ3_S": "iq3_s", "TQ1_0": "tq1_0", "TQ2_0": "tq2_0", "Q1_0": "q1_0", "Q2_0": "q2_0", "MXFP4": "mxfp4",
         "NVFP4": "nvfp4"}
EVEN = [name for name in TYPES if re.match("IQ[123]", name)]
GGML_TYPES = 64  # numbers of ggml's types are below
FACTOR, TERM, MASK = 6364136223846793005, 1442695040888963407, (1 << 64) - 1
state = 1


def uniform():
    global state
    state = (state * FACTOR + TERM) & MASK
    return (state >> 40) / 2.0**24


def element():
    y = uniform() + uniform() + uniform() + uniform() - 2.0
    return np.float32(y * abs(y) + 0.5 * y)


def main():
    lib = ctypes.CDLL(sys.argv[1])
    for number in range(GGML_TYPES):
        lib.ggml_quantize_init(number)
    x = np.array([element() for _ in range(ROWS * COLS)], np.float32)
    importance = np.array([np.float32(0.25 + 4.0 * uniform() ** 4) for _ in range(COLS)], np.float32)
    even = np.ones(COLS, np.float32)
    for name, own in TYPES.items():
        found = []
        for given in (even if name in EVEN else None, importance):
            blocks, back = np.zeros(x.size * 4, np.uint8), np.empty_like(x)
            quantize, dequantize = getattr(lib, f"quantize_{own}"), getattr(lib, f"dequantize_row_{own}")
            quantize.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
            dequantize.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
            quantize(x.ctypes.data, blocks.ctypes.data, ROWS, COLS, given.ctypes.data if given is not None else None)
            dequantize(blocks.ctypes.data, back.ctypes.data, x.size)
            error = (x.astype(np.float64) - back).reshape(ROWS, COLS) ** 2
            found.append((error * (given if given is not None else 1)).sum())
        print(f"    {{ AK_QUANT_{name}, {{ {found[0]:.4g}, {found[1]:.4g} }} }},")


main()
