#!/usr/bin/env python3
"""What a smaller KV cache changes: KL divergence of next tokens behind a long text.

    PYTHONPATH=python AKUNU_LIBRARY=b/.libs/libakunu.so kv_cache.py MODEL TEXT [--depth 4096,8192] [--tokens 256]
        [--texts 2] [--types f16,q8_0,…] [--keep 512,1024,2048]                        (needs numpy from PyPI)

A session runs the first --depth tokens of TEXT, drops what --keep says, and is given the next --tokens tokens. Their
logits are compared with those of the whole cache in F16: KL divergence in nats and how often the most likely token is
the same, means over all tokens and --texts parts of TEXT. Types are those of keys and values, or of each: q8_0/q4_0.
"""
import argparse
import ctypes

import numpy as np

import akunu
from akunu import _abi
from akunu._library import lib

PASS = 64
CHOICES = ("important", "recent")


def check(ok):
    if not ok:
        raise SystemExit(lib.akunu_last_error().decode())


class Text:
    """A sequence of a session."""

    def __init__(self, session, sequence):
        self.pointer, self.sequence = session._pointer, sequence
        self.n_vocab = session.model.info.vocab_size

    def prefill(self, ids):
        last = ctypes.c_size_t()
        cancel = _abi.akunu_cancel_fn(0)
        prompt = _abi.akunu_ids((ctypes.c_int32 * len(ids))(*ids), len(ids))
        check(lib.akunu_session_prefill(self.pointer, self.sequence, prompt, cancel, None, last) == 0)

    def log_probabilities(self, ids):
        rows = []
        for first in range(0, len(ids), PASS):
            part = ids[first : first + PASS]
            tokens = (_abi.akunu_batch_token * len(part))(*[(i, self.sequence, True) for i in part])
            check(lib.akunu_session_decode(self.pointer, tokens, len(part)) == 0)
            for i in range(len(part)):
                row = lib.akunu_session_logits(self.pointer, i)
                x = np.ctypeslib.as_array(row, shape=(self.n_vocab,)).astype(np.float64)
                x -= x.max()
                rows.append((x - np.log(np.exp(x).sum())).astype(np.float32))
        return np.array(rows)

    def fork(self):
        n = lib.akunu_sequence_length(self.pointer, self.sequence)
        fork = Text.__new__(Text)
        fork.pointer, fork.n_vocab = self.pointer, self.n_vocab
        fork.sequence = lib.akunu_sequence_fork(self.pointer, self.sequence, n)
        check(fork.sequence >= 0)
        return fork

    def evict(self, n, choice):
        check(lib.akunu_sequence_evict(self.pointer, self.sequence, n, choice) == 0)

    def free(self):
        lib.akunu_sequence_free(self.pointer, self.sequence)


def numbers(text):
    return [int(x) for x in text.split(",")] if text else []


def compare(base, other):
    kl = (np.exp(base.astype(np.float64)) * (base.astype(np.float64) - other)).sum(-1)
    return kl, base.argmax(-1) == other.argmax(-1)


def open_text(o, model, depth, kind):
    k_type, v_type = (kind.split("/") * 2)[:2]
    context = depth + 4 * o.tokens + 512
    session = akunu.Session(model, context=context, max_sequences=3, k_type=k_type, v_type=v_type)
    return session, Text(session, lib.akunu_sequence_new(session._pointer))


def measure(o, model, ids, depth, found):
    head, rest = ids[:depth], ids[depth : depth + o.tokens]
    session, text = open_text(o, model, depth, "f16")
    text.prefill(head)
    fork = text.fork()
    base = fork.log_probabilities(rest)
    fork.free()
    for keep in o.keep:
        for choice, name in enumerate(CHOICES):
            fork = text.fork()
            fork.evict(keep, choice)
            found.setdefault(f"{keep} {name}", []).append(compare(base, fork.log_probabilities(rest)))
            fork.free()
    session.close()
    for kind in o.types:
        session, text = open_text(o, model, depth, kind)
        text.prefill(head)
        found.setdefault(kind, []).append(compare(base, text.log_probabilities(rest)))
        session.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("text")
    parser.add_argument("--depth", type=numbers, default=[4096, 8192])
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--texts", type=int, default=2)
    parser.add_argument("--types", type=lambda text: text.split(",") if text else [], default=["q8_0", "q5_0", "q4_0"])
    parser.add_argument("--keep", type=numbers, default=[512, 1024, 2048])
    o = parser.parse_args()
    model = akunu.Model(o.model)
    with open(o.text, encoding="utf-8") as file:
        ids = model.tokenize(file.read())
    for depth in o.depth:
        length, found = depth + o.tokens, {}
        if o.texts * length > len(ids):
            raise SystemExit(f"{o.text} has {len(ids)} tokens: expected {o.texts} times {length}")
        for i in range(o.texts):
            measure(o, model, ids[i * length : (i + 1) * length], depth, found)
        for name, results in found.items():
            kl = np.concatenate([x for x, _ in results])
            same = np.concatenate([x for _, x in results])
            error = kl.std() / np.sqrt(kl.size)
            print(f"depth {depth:6}  {name:16}  KL {kl.mean():.5f} ± {error:.5f}  same {100 * same.mean():.1f} %", flush=True)


main()
