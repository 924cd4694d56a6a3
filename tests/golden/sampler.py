#!/usr/bin/env python3
"""Which tokens llama.cpp's samplers leave, and with what probability, for tests/engine/sample/test_sampler.c.

    sampler.py LIBLLAMA.so OUT/sampler.txt     (numpy)

The chain is penalties, top-k, top-p, min-p, temperature, dist. The file has blocks of two kinds:
    logits NAME N, then N hexadecimal floats on one line
    case LOGITS top_k top_p min_p temperature repeat last_n presence frequency, then
        the number of tokens accepted before, and these; the number of tokens left, and "id probability" of each, most likely first
"""
import ctypes
import sys

import numpy as np


class Token(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int32), ("logit", ctypes.c_float), ("p", ctypes.c_float)]


class Tokens(ctypes.Structure):
    _fields_ = [("data", ctypes.POINTER(Token)), ("size", ctypes.c_size_t), ("selected", ctypes.c_int64), ("sorted", ctypes.c_bool)]


CASES = [  # logits, top_k, top_p, min_p, temperature, repeat, last_n, presence, frequency, accepted before
    ("trained", 40, 0.95, 0.05, 0.8, 1.0, 0, 0.0, 0.0, []),
    ("trained", 0, 0.95, 0.0, 1.0, 1.0, 0, 0.0, 0.0, []),
    ("trained", 0, 0.5, 0.0, 1.3, 1.0, 0, 0.0, 0.0, []),
    ("trained", 0, 1.0, 0.02, 1.0, 1.0, 0, 0.0, 0.0, []),
    ("trained", 5, 1.0, 0.0, 2.0, 1.0, 0, 0.0, 0.0, []),
    ("trained", 1, 1.0, 0.0, 1.0, 1.0, 0, 0.0, 0.0, []),
    ("trained", 0, 0.9, 0.1, 0.5, 1.0, 0, 0.0, 0.0, []),
    ("trained", 20, 1.0, 0.0, 1.0, 1.3, 64, 0.0, 0.0, "best"),
    ("trained", 20, 1.0, 0.0, 1.0, 1.0, 64, 0.7, 0.2, "best"),
    ("trained", 20, 0.9, 0.01, 1.0, 1.2, 3, 0.5, 0.1, "best"),
    ("flat", 0, 0.95, 0.0, 1.0, 1.0, 0, 0.0, 0.0, []),
    ("flat", 0, 0.3, 0.0, 1.0, 1.0, 0, 0.0, 0.0, []),
    ("flat", 100, 0.8, 0.3, 1.5, 1.0, 0, 0.0, 0.0, []),
    ("flat", 0, 1.0, 0.5, 0.7, 1.0, 0, 0.0, 0.0, []),
    ("small", 0, 0.99, 0.0, 1.0, 1.0, 0, 0.0, 0.0, []),
    ("small", 0, 1.0, 0.0, 1.0, 1.5, 8, 0.3, 0.3, [0, 1, 2, 2, 2, 3, 4, 5, 6, 7, 1, 1]),
]


def logits():
    rng = np.random.default_rng(20260822)
    ranks = rng.permutation(1500)
    trained = 12 - 1.3 * np.log1p(ranks) + rng.normal(0, 0.7, 1500)
    return {"trained": trained.astype("<f4"), "flat": rng.normal(0, 0.6, 1200).astype("<f4"), "small": rng.normal(-1, 2, 16).astype("<f4")}


def main():
    lib = ctypes.CDLL(sys.argv[1])
    for name in ("penalties", "top_k", "top_p", "min_p", "temp", "dist"):
        getattr(lib, "llama_sampler_init_" + name).restype = ctypes.c_void_p
    tables = logits()

    def chain(case, n):
        _, top_k, top_p, min_p, temperature, repeat, last_n, presence, frequency, _ = case
        f = ctypes.c_float
        return [lib.llama_sampler_init_penalties(n, last_n, f(repeat), f(frequency), f(presence)),
                lib.llama_sampler_init_top_k(top_k),
                lib.llama_sampler_init_top_p(f(top_p), ctypes.c_size_t(1)),
                lib.llama_sampler_init_min_p(f(min_p), ctypes.c_size_t(1)),
                lib.llama_sampler_init_temp(f(temperature)),
                lib.llama_sampler_init_dist(ctypes.c_uint32(1))]

    with open(sys.argv[2], "w", encoding="ascii") as out:
        for name, values in tables.items():
            print("logits", name, len(values), file=out)
            print(" ".join(float(v).hex() for v in values), file=out)
        for case in CASES:
            values = tables[case[0]]
            best = np.argsort(-values, kind="stable")
            accepted = [int(best[i]) for i in (0, 3, 3, 1, 7, 0, 3, 9, 2)] if case[9] == "best" else case[9]
            array = (Token * len(values))(*[Token(i, float(v), 0.0) for i, v in enumerate(values)])
            tokens = Tokens(array, len(values), -1, False)
            for sampler in chain(case, len(values)):
                for token in accepted:
                    lib.llama_sampler_accept(ctypes.c_void_p(sampler), token)
                lib.llama_sampler_apply(ctypes.c_void_p(sampler), ctypes.byref(tokens))
            left = [(tokens.data[i].id, tokens.data[i].p) for i in range(tokens.size)]
            left.sort(key=lambda t: (-t[1], t[0]))
            print("case", *case[:9], file=out)
            print(len(accepted), *accepted, file=out)
            print(len(left), *[f"{i} {p:.7g}" for i, p in left], file=out)


main()
