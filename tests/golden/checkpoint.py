#!/usr/bin/env python3
"""A checkpoint as a trainer of Whisper saves it, for tests/files/weights/test_checkpoint.c.

    checkpoint.py OUT            (torch, numpy, openai-whisper)

OUT/trainer.pt has the sizes and the tensors of a tiny model in a dict of the model's, and around them what trainers add: an
optimizer's state, settings, counters, numbers of other types. Element i of each tensor is i. OUT/old.pt begins as files of PyTorch
before version 1.6 do.
"""
import argparse
import collections
import sys
from pathlib import Path

import numpy as np
import torch
from whisper.model import ModelDimensions, Whisper


class Averages:
    def __init__(self):
        self.losses, self.best = [2.5, 1.25], np.float32(0.5)


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    dims = ModelDimensions(n_mels=2, n_audio_ctx=5, n_audio_state=4, n_audio_head=2, n_audio_layer=1, n_vocab=6, n_text_ctx=5, n_text_state=4,
                           n_text_head=2, n_text_layer=1)
    model = Whisper(dims)
    state = collections.OrderedDict()
    for name, value in model.state_dict().items():
        counted = torch.arange(value.numel(), dtype=torch.float32).reshape(value.shape)
        if name.endswith("mlp.0.weight"):  # column after column
            counted = counted.reshape(value.shape[::-1]).T
        state["module." + name] = torch.nn.Parameter(counted.to(torch.bfloat16) if "query.weight" in name else counted)
    whole = torch.arange(12, dtype=torch.float32)  # two tensors of one storage
    state["module.decoder.ln.bias"], state["module.decoder.ln.weight"] = whole[4:8], whole[0:4]
    state["module.loss.num_batches_tracked"] = torch.tensor(7)
    state["module.loss.scale"] = torch.tensor(0.5)
    state._metadata = collections.OrderedDict({"": {"version": 1}})
    two = [torch.nn.Parameter(torch.zeros(3, 4)), torch.nn.Parameter(torch.zeros(2))]
    optimizer = torch.optim.AdamW(two, lr=1e-3)
    sum(p.sum() for p in two).backward()
    optimizer.step()
    args = argparse.Namespace(lr=1e-3, path=Path("a/b"), device=torch.device("cpu"), dtype=torch.bfloat16, size=torch.Size([1, 2]), names={"a", "b"})
    torch.save({"epoch": 3, "loss": np.float64(0.25), "model": {"dims": dims, "state_dict": state}, "optimizer_state_dict": optimizer.state_dict(),
                "args": args, "averages": Averages(), "history": collections.defaultdict(list, {"wer": [0.5, 0.25]}), "seed": 1 << 70,
                "masks": [torch.zeros(2, 3, dtype=torch.int64)[:, ::2], torch.zeros(4, dtype=torch.float64), torch.zeros(0), torch.ones(2, dtype=torch.bool)],
                "rng": torch.get_rng_state()[:8].clone(), "array": np.arange(3), "bytes": b"\x00\xff"}, out / "trainer.pt")
    torch.save({"dims": {}}, out / "old.pt", _use_new_zipfile_serialization=False)


main()
