#!/usr/bin/env python3
"""The perplexity that tests/apps/cli/test_cli.sh expects of tests/data/models/llama-f32.gguf.

usage: cli_perplexity.py FIXTURE        the folder llama-f32 of the fixtures

From golden/ids.npy and golden/logits.npy (transformers, float32): one chunk of
all ids, of which those after the middle are scored. Prints the value, its
error and the ids; the text of the test is what the ids behind BOS stand for.
"""
import math
import sys
from pathlib import Path

import numpy as np

golden = Path(sys.argv[1]) / "golden"
ids, logits = np.load(golden / "ids.npy"), np.load(golden / "logits.npy").astype(np.float64)
largest = logits.max(-1, keepdims=True)
logp = logits - largest - np.log(np.exp(logits - largest).sum(-1, keepdims=True))
nll = np.array([-logp[i, ids[i + 1]] for i in range(len(ids) // 2, len(ids) - 1)])
error = math.sqrt(((nll**2).mean() - nll.mean() ** 2) / (len(nll) - 1)) * math.exp(nll.mean())
print(f"{math.exp(nll.mean()):.4f} ± {error:.4f}", *ids)
