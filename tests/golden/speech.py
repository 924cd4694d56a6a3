#!/usr/bin/env python3
"""Texts and segments of openai-whisper over a model that is a formula.

usage: speech.py WHISPER FOLDER      makes decode.txt, transcribe.txt and words.txt in tests/data/speech

WHISPER is the unpacked source of PyPI's openai-whisper 20250625 (needs torch, tiktoken, numba). Its
own DecodingTask and transcribe() run; only the model, the spectrogram and the text of a token are
replaced by formulas, which tests/speech/search/test_speech.c has too: a logit is a hash of the window, the
tokens before and its own token. Each line is the arguments, "|", and what came out."""
import pathlib
import random
import sys
import types

import numpy as np
import torch

sys.path.insert(0, sys.argv[1])
import whisper.decoding as decoding  # noqa: E402
import whisper.timing as timing  # noqa: E402
import whisper.tokenizer as tokenizers  # noqa: E402
import whisper.transcribe  # noqa: E402,F401  (the module, which the package hides)

transcribing = sys.modules["whisper.transcribe"]
np.seterr(over="ignore")
window = 0


def logits(tokens, n_vocab, tokenizer, n_prompt):
    digest = 1469598103934665603 ^ (window * 2654435761) & (2**64 - 1)
    for t in tokens:
        digest = ((digest ^ t) * 1099511628211) & (2**64 - 1)
    x = np.uint64(digest) ^ (np.arange(n_vocab, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        x = (x ^ (x >> np.uint64(33))) * np.uint64(factor)
    x ^= x >> np.uint64(33)
    unit = (x >> np.uint64(40)).astype(np.float64) / 2.0**24
    out = (unit * unit * unit * 14.0).astype(np.float32)
    out[tokenizer.eot] += np.float32(len(tokens) - n_prompt) * np.float32(0.5)
    out[tokenizer.timestamp_begin :] -= np.float32(5 + digest % 5)
    if window % 3 == 1:
        out[tokenizer.no_speech] += np.float32(24)
    return torch.tensor(out)


class Formula(decoding.Inference):
    def __init__(self, task, n_vocab):
        self.task, self.n_vocab, self.n_prompt, self.is_first = task, n_vocab, len(task.initial_tokens), True

    def logits(self, tokens, audio_features):
        out = torch.zeros(tokens.shape[0], tokens.shape[1], self.n_vocab)
        for i, row in enumerate(tokens.tolist()):
            out[i, -1] = logits(row, self.n_vocab, self.task.tokenizer, self.n_prompt)
            if self.is_first:
                at = self.task.sot_index
                out[i, at] = logits(row[: at + 1], self.n_vocab, self.task.tokenizer, at + 1)
        self.is_first = False
        return out

    def rearrange_kv_cache(self, source_indices):
        pass


decoding.PyTorchInference = lambda model, n: None
tokenizers.Tokenizer.decode = lambda self, ids, **_: "".join(" " if t % 5 == 0 else f" w{t % 97}" for t in ids if t < self.timestamp_begin)
transcribing.log_mel_spectrogram = lambda n, n_mels, padding: torch.arange(n + padding // 160, dtype=torch.float32)[None].repeat(n_mels, 1)


def decode(model, mel, options):
    global window
    window = int(mel[0, 0])
    task = decoding.DecodingTask(model, options)
    task.inference = Formula(task, model.dims.n_vocab)
    if options.beam_size:
        task.decoder.inference = task.inference
    return task, task.run(mel[None])[0]


def make_model(n_vocab):
    multilingual = n_vocab > 51864
    model = types.SimpleNamespace(
        is_multilingual=multilingual,
        num_languages=n_vocab - 51765 - multilingual,
        device=torch.device("cpu"),
        dims=types.SimpleNamespace(n_text_ctx=448, n_audio_ctx=1500, n_audio_state=4, n_vocab=n_vocab, n_mels=80),
        encoder=lambda mel: torch.zeros(mel.shape[0], 1500, 4),
    )
    model.decode = lambda mel, options: decode(model, mel, options)[1]
    return model


def numbers(*values):
    return " ".join(str(int(v)) if isinstance(v, (bool, int)) else f"{v:.9g}" for v in values)


def decode_case(r):
    n_vocab = r.choice([51864, 51865, 51866])
    beams, timestamps = r.choice([0, 0, 2, 3]), r.random() < 0.6
    patience = r.choice([1.0, 2.0, 0.6]) if beams else 1.0
    penalty = r.choice([None, None, 0.6, 1.0])
    prompt = [r.randrange(1000, 40000) for _ in range(r.randrange(4))]
    options = decoding.DecodingOptions(
        language="en", beam_size=beams or None, patience=patience if beams else None, length_penalty=penalty, sample_len=12,
        without_timestamps=not timestamps, suppress_tokens="", fp16=False, prompt=prompt or None,
    )  # fmt: skip
    mel = torch.full((80, 3000), float(r.randrange(9)))
    task, result = decode(make_model(n_vocab), mel, options)
    arguments = [n_vocab, window, timestamps, beams, patience, -1.0 if penalty is None else penalty, task.sot_index, len(task.initial_tokens)]
    return numbers(*arguments, *task.initial_tokens) + " | " + numbers(result.avg_logprob, result.no_speech_prob, *result.tokens)


def transcribe_case(r):
    n_vocab = r.choice([51864, 51865, 51866])
    n_frames, beams, timestamps = r.choice([1, 900, 5000]), r.choice([0, 0, 2]), r.random() < 0.8
    previous, keep = r.random() < 0.6, r.random() < 0.3
    log_prob, no_speech = r.choice([-1.0, -4.0, -9.0, -20.0]), r.choice([0.6, 0.6, 0.99])
    first = min(n_frames - 1, r.choice([0, 0, r.randrange(800)]))
    prompt = "hello there" if r.random() < 0.5 else None
    translate = n_vocab > 51864 and r.random() < 0.3
    segments = transcribing.transcribe(
        make_model(n_vocab), n_frames, temperature=(0.0,), logprob_threshold=log_prob, no_speech_threshold=no_speech,
        condition_on_previous_text=previous, initial_prompt=prompt, carry_initial_prompt=keep, language="en", fp16=False,
        task="translate" if translate else "transcribe", without_timestamps=not timestamps, beam_size=beams or None, sample_len=8,
        suppress_tokens="", clip_timestamps=[first / 100],
    )["segments"]  # fmt: skip
    ids = tokenizers.get_tokenizer(n_vocab > 51864, language="en").encode(" " + prompt) if prompt else []
    head = numbers(n_vocab, n_frames, timestamps, beams, previous, keep, translate, log_prob, no_speech, first, len(ids), *ids)
    rows = [
        numbers(s["seek"], s["start"], s["end"], s["avg_logprob"], s["compression_ratio"], s["no_speech_prob"], len(s["tokens"]), *s["tokens"])
        for s in segments
    ]
    return " | ".join([head, *rows])


# The text of a token by its id modulo their number; two of them are halves of a character.
PIECES = [b" the", b" cat", b"ing", b".", b",", b' "', b'"', b"!", b" (", b")", b"\xe2\x82", b"\xac", b" ", b"'s", b"-", b" a"]
HEADS = 2
tokenizers.Tokenizer.decode_with_timestamps = lambda self, ids, **_: b"".join(PIECES[t % len(PIECES)] for t in ids if t < self.eot).decode(errors="replace") or "<|end|>"


def scores(seed, head, n_tokens):
    """A ridge that climbs with the tokens, and noise."""
    x = np.arange(n_tokens * 1500, dtype=np.uint64) + np.uint64((seed * HEADS + head) * 1500 * 512)
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    noise = ((x ^ (x >> np.uint64(33))) >> np.uint64(40)).astype(np.float64).reshape(n_tokens, 1500) / 2.0**24
    token, position = np.arange(n_tokens)[:, None], np.arange(1500)[None]
    return (noise * 2.0 + 4.0 / (1.0 + np.abs(position - 9.0 * token) / 8.0)).astype(np.float32)


class Speaker:
    """As much of a model as find_alignment() looks at."""

    def __init__(self, seed, tokenizer, n_prompt):
        self.seed, self.tokenizer, self.n_prompt, self.device = seed, tokenizer, n_prompt, torch.device("cpu")
        self.dims = types.SimpleNamespace(n_text_layer=1)
        self.decoder = types.SimpleNamespace(blocks=[types.SimpleNamespace(cross_attn=torch.nn.Identity())])
        self.alignment_heads = torch.ones(1, HEADS).to_sparse()

    def __call__(self, mel, tokens):
        n = tokens.shape[1]
        self.decoder.blocks[0].cross_attn(torch.tensor(np.stack([scores(self.seed, h, n) for h in range(HEADS)]))[None, None])
        rows = [logits(tokens[0, : i + 1].tolist(), self.tokenizer.eot + 1, self.tokenizer, 0)[: self.tokenizer.eot + 1] for i in range(n)]
        return torch.stack(rows)[None]


def words_case(r):
    global window
    window = 0
    multilingual, spaced, seed, n_frames = r.random() < 0.5, r.random() < 0.8, r.randrange(1000), r.choice([3000, 3000, 700, 9])
    spaced = spaced or not multilingual
    tokenizer = tokenizers.get_tokenizer(multilingual, language="en" if spaced else "ja", task="transcribe")
    seek, last, start, segments = r.choice([0, 1234]), r.choice([0.0, 11.0]), 0.0, []
    for _ in range(r.randrange(1, 4)):
        end = start + r.choice([0.5, 2.0, 9.0])
        segments.append({"seek": seek, "start": seek / 100 + start, "end": seek / 100 + end, "tokens": [r.randrange(200, 50000) for _ in range(r.randrange(9))]})
        start = end + r.choice([0.0, 1.0])
    head = [multilingual, spaced, seed, n_frames, seek, last, len(segments)]
    for s in segments:
        head += [s["start"], s["end"], len(s["tokens"]), *s["tokens"]]
    timing.add_word_timestamps(
        segments=segments, model=Speaker(seed, tokenizer, 0), tokenizer=tokenizer, mel=torch.zeros(80, 3000), num_frames=n_frames, last_speech_timestamp=last,
    )  # fmt: skip
    rows = [numbers(s["start"], s["end"], len(s["words"])) for s in segments]
    rows += [numbers(w["start"], w["end"], w["probability"], len(w["word"].encode())) for s in segments for w in s["words"]]
    return " | ".join([numbers(*head), *rows])


for name, make, n in (("decode", decode_case, 16), ("transcribe", transcribe_case, 12), ("words", words_case, 24)):
    r = random.Random(name)
    lines = [make(r) for _ in range(n)]
    (pathlib.Path(sys.argv[2]) / f"{name}.txt").write_text("\n".join(lines) + "\n")
