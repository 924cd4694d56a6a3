#!/usr/bin/env python3
"""Writes tests/data/quant/{A4,A5,A8,F8}.dequant: blocks of akunu's own types, then their
elements as float32: x = d * q + m, and x = d * e4m3 / 256.

    affine_data.py OUT           (needs numpy from PyPI)
"""
import sys
from pathlib import Path

import numpy as np

N = 12  # blocks


def bf16(rng):
    return (rng.standard_normal(N).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def to_f32(half):
    return (half.astype(np.uint32) << 16).view(np.float32)


def nibbles(q):
    return (q[:, :16] & 15 | (q[:, 16:] & 15) << 4).astype(np.uint8)


def e4m3(q):
    exponent, mantissa = (q >> 3 & 15).astype(int), (q & 7).astype(int)
    x = np.where(exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * 2.0 ** (exponent - 10))
    return np.where(q & 128, -x, x).astype(np.float32)


def write(out, name, blocks, d, m, q):
    values = d[:, None] * q.astype(np.float32)
    if m is not None:  # else zeros keep their signs
        values = values + m[:, None]
    assert values.dtype == np.float32
    (out / f"{name}.dequant").write_bytes(blocks.tobytes() + values.tobytes())


def main():
    out = Path(sys.argv[1])
    rng = np.random.default_rng(20250102)
    for name, bits in (("A4", 4), ("A5", 5)):
        d, m, q = bf16(rng), bf16(rng), rng.integers(0, 1 << bits, (N, 32))
        parts = [d.reshape(N, 1).view(np.uint8), m.reshape(N, 1).view(np.uint8)]
        if bits == 5:
            parts.append(np.packbits((q >> 4).astype(np.uint8), axis=1, bitorder="little"))
        write(out, name, np.concatenate([*parts, nibbles(q)], axis=1), to_f32(d), to_f32(m), q)
    d, m = rng.standard_normal((2, N)).astype(np.float32)
    q = rng.integers(-128, 128, (N, 32)).astype(np.int8)
    blocks = np.concatenate([d.reshape(N, 1).view(np.uint8), m.reshape(N, 1).view(np.uint8), q.view(np.uint8)], axis=1)
    write(out, "A8", blocks, d, m, q)
    d, q = rng.standard_normal(N).astype(np.float32), np.arange(N * 128, dtype=np.int64).reshape(N, 128).astype(np.uint8)
    q[q & 127 == 127] ^= 1  # no numbers
    blocks = np.concatenate([d.reshape(N, 1).view(np.uint8), q], axis=1)
    write(out, "F8", blocks, d * np.float32(2**-8), None, e4m3(q))


main()
