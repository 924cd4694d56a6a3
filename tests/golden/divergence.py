#!/usr/bin/env python3
"""The base logits, and the figures, of tests/apps/cli/test_quality.sh.

usage: divergence.py MODELS OUT.kld        MODELS: tests/data/models

The base is the fixture llama-f32 with noise on its logits (transformers,
float32). Written are its tokens and log-probabilities in the form of
llama-perplexity --save-all-logits, one chunk of 40, after
tools/perplexity/perplexity.cpp of llama.cpp; printed is what --kl-base has to
find for the fixture itself, in double precision from the written 16 bits.
"""
import sys
from pathlib import Path

import numpy as np

models, out = Path(sys.argv[1]), sys.argv[2]
logits = np.load(models / "llama-f32.npy").astype(np.float64)
ids = np.array((models / "llama-f32.txt").read_text().split("\n")[0].split()[2:], dtype=np.int32)
context, vocab = len(ids), logits.shape[1]
first = context // 2
model = logits[first : context - 1]
base = (model + np.random.default_rng(7).normal(0, 0.3, model.shape)).astype(np.float32)

largest = base.max(-1, keepdims=True)
least = np.maximum(base.min(-1, keepdims=True), largest - np.float32(16))
log_sum = np.log(np.exp(base.astype(np.float64) - largest).sum(-1, keepdims=True))
scale = (largest - least) / np.float32(65535)
values = np.rint((np.maximum(base, least) - least) / scale).astype(np.uint16)
log_least = (least - largest - log_sum).astype(np.float32)
with open(out, "wb") as file:
    file.write(b"_logits_" + np.array([context, vocab, 1], dtype=np.uint32).tobytes() + ids.tobytes())
    for row in range(len(base)):
        record = values[row].tobytes() + b"\0\0" * (vocab % 2)
        file.write(scale[row].tobytes() + log_least[row].tobytes() + record)

log_base = values * scale.astype(np.float64) + log_least
log_model = model - np.log(np.exp(model - model.max(-1, keepdims=True)).sum(-1, keepdims=True)) - model.max(-1, keepdims=True)
kl = (np.exp(log_base) * (log_base - log_model) * (log_base > -16)).sum(-1)
rows, following = np.arange(len(model)), ids[first + 1 :]
nll, base_nll = -log_model[rows, following], -log_base[rows, following]
rank = (log_model > log_model[rows, log_base.argmax(-1)][:, None]).sum(-1)


def mean(x):
    return x.mean(), np.sqrt(x.var() / (len(x) - 1))


def exp_mean(x):
    m, e = mean(x)
    return np.exp(m), np.exp(m) * e


print("perplexity %.4f %.4f" % exp_mean(nll))
print("base %.4f %.4f" % exp_mean(base_nll))
ratio = exp_mean(nll - base_nll)
print("change %.3f %.3f" % (100 * ratio[0] - 100, 100 * ratio[1]))
print("kl %.6f %.6f" % mean(kl))
print("kl median, 90, 99, 99.9 %%, maximum: %.6f %.6f %.6f %.6f %.6f" % (*np.quantile(kl, [0.5, 0.9, 0.99, 0.999]), kl.max()))
for n in (1, 5):
    print("top-%d %.3f %.3f" % (n, *(100 * v for v in mean((rank < n).astype(float)))))
