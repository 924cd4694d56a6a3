"""Writes tests/data/speech/model.bin, a small Whisper model of random weights in whisper.cpp's GGML
format, and stages.txt: log-mel frames, what openai-whisper's encoder makes of them, and the
decoder's logits for some ids; the same of the first SHORT positions alone. Run as

    python3 tests/golden/whisper_model.py tests/data/speech

with torch and openai-whisper 20250625."""
import struct
import sys
from pathlib import Path

import torch
from whisper.model import ModelDimensions, Whisper

MELS, CONTEXT, STATE, HEADS, VOCAB, TEXT = 4, 40, 32, 2, 48, 24
ENCODER_LAYERS, DECODER_LAYERS = 3, 2
SHORT = 23
IDS = [7, 0, 31, 47, 12, 12, 5, 40, 3]


def rows(f, name, values):
    print(name, *values.shape, file=f)
    for row in values.tolist():
        print(*(f"{x:.9g}" for x in row), file=f)


def main():
    folder = Path(sys.argv[1])
    torch.manual_seed(24)
    dims = ModelDimensions(MELS, CONTEXT, STATE, HEADS, ENCODER_LAYERS, VOCAB, TEXT, STATE, HEADS, DECODER_LAYERS)
    model = Whisper(dims).eval()
    with torch.no_grad():
        for name, p in model.state_dict().items():
            if name != "encoder.positional_embedding":
                is_scale = "ln" in name and name.endswith("weight")
                p.copy_(torch.randn(p.shape) * (0.2 if is_scale or p.ndim == 1 else 0.3) + is_scale)
            if p.ndim > 1 and "positional" not in name:
                p.copy_(p.half().float())
        mel = torch.randn(1, MELS, 2 * CONTEXT)
        encoded = model.encoder(mel)
        logits = model.decoder(torch.tensor([IDS]), encoded)
        positions = model.encoder.positional_embedding
        model.encoder.positional_embedding = positions[:SHORT]
        short = model.encoder(mel[:, :, : 2 * SHORT])
        short_logits = model.decoder(torch.tensor([IDS]), short)
        model.encoder.positional_embedding = positions

    out = struct.pack("<12i", 0x67676D6C, VOCAB, CONTEXT, STATE, HEADS, ENCODER_LAYERS, TEXT, STATE, HEADS, DECODER_LAYERS, MELS, 1)
    out += struct.pack("<2i", MELS, 201) + bytes(4 * MELS * 201)
    out += struct.pack("<i", 8) + b"".join(struct.pack("<I", 1) + bytes([97 + i]) for i in range(8))
    for name, p in model.state_dict().items():
        if name in ("encoder.conv1.bias", "encoder.conv2.bias"):
            p = p[:, None]
        is_half = p.ndim > 1 and "positional" not in name and not name.endswith("bias")
        out += struct.pack("<3i", p.ndim, len(name), int(is_half)) + struct.pack(f"<{p.ndim}i", *reversed(p.shape)) + name.encode()
        out += (p.half() if is_half else p.float()).contiguous().numpy().tobytes()
    (folder / "model.bin").write_bytes(out)
    with open(folder / "stages.txt", "w") as f:
        rows(f, "mel", mel[0].T)
        rows(f, "encoded", encoded[0])
        print("ids", 1, len(IDS), file=f)
        print(*IDS, file=f)
        rows(f, "logits", logits[0])
        rows(f, "encoded_short", short[0])
        rows(f, "logits_short", short_logits[0])


main()
