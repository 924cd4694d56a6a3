#!/usr/bin/env python3
"""Which segments openai-whisper drops as hallucinations, and where it reads on.

usage: hallucination.py WHISPER FOLDER      makes hallucination.txt in tests/data/speech

WHISPER is the unpacked source of PyPI's openai-whisper 20250625 (needs torch, tiktoken, numba). Its
own transcribe() runs; what the model would write, and the times of its words, are random. Each line
is a window: threshold, its first frame, frames of the clip, frames of the window that are the
clip's, end of the text before it, whether a time ends it, where the next one begins without this
and with it, segments, segments that stay; then for each segment its start and end and number of
words, and for each word its start, end, probability and whether it is a full stop."""
import pathlib
import random
import sys
import types

import torch

sys.path.insert(0, sys.argv[1])
import whisper.tokenizer as tokenizers  # noqa: E402
import whisper.transcribe  # noqa: E402,F401  (the module, which the package hides)

transcribing = sys.modules["whisper.transcribe"]
transcribing.log_mel_spectrogram = lambda n, n_mels, padding: torch.zeros(n_mels, n + padding // 160)
r = random.Random("hallucination")
tokenizer = tokenizers.get_tokenizer(False)
windows = []


def choose_times(seconds):
    """Starts and ends of segments, in steps of 20 ms, that fit into the window."""
    at, out = 0.0, []
    for _ in range(r.randrange(1, 6)):
        start = at + r.choice([0.0, 0.0, 0.4, 1.2, 3.0, 6.0])
        end = start + r.choice([0.2, 0.8, 2.0, 5.0])
        if end > seconds:
            break
        out.append((start, end))
        at = end
    return out or [(0.0, min(seconds, 1.0))]


def decode(mel, options):
    first, tokens = tokenizer.timestamp_begin, []
    for start, end in choose_times(windows[-1]["left"]):
        tokens += [first + round(start * 50), 1000, first + round(end * 50)]
    ends = r.random() < 0.4
    if not ends:
        tokens.append(tokens[-1])
    return types.SimpleNamespace(
        tokens=tokens, temperature=0.0, avg_logprob=0.0, compression_ratio=1.0, no_speech_prob=0.0, text=""
    )


def speak(kind, start, end):
    words, at, n = [], start, r.randrange(1, 11) if kind != "none" else 0
    for i in range(n):
        stop = round(end if i + 1 == n else at + (end - start) / n, 2)
        bad = kind == "bad" or (kind == "mixed" and r.random() < 0.5)
        words.append({"word": " word" if i + 1 < n or n == 1 else ".", "start": round(at, 2), "end": stop, "probability": r.choice([0.05, 0.1]) if bad else r.choice([0.3, 0.9])})
        at = stop
    return words


def add_words(*, segments, num_frames, last_speech_timestamp, **_):
    w = windows[-1]
    w.update(used=num_frames, last=last_speech_timestamp, ends=w["ends"](segments), segments=segments[:])
    for s in segments:
        s["words"] = speak(r.choice(["bad", "good", "good", "mixed", "none"]), s["start"], s["end"])
    w["words"] = [list(s["words"]) for s in segments]


transcribing.add_word_timestamps = add_words


class Model:
    is_multilingual, num_languages, device = False, 99, torch.device("cpu")
    dims = types.SimpleNamespace(n_text_ctx=448, n_audio_ctx=1500, n_mels=80)

    def decode(self, mel, options):
        seek = sys._getframe(2).f_locals["seek"]
        windows.append({"seek": seek, "left": min(30.0, (self.n - seek) / 100)})
        out = decode(mel, options)
        single = out.tokens[-1] >= tokenizer.timestamp_begin and out.tokens[-2] < tokenizer.timestamp_begin
        windows[-1]["ends"] = lambda segments: single
        windows[-1]["plain"] = None if single else (out.tokens[-1] - tokenizer.timestamp_begin) * 2
        return out


def number(x):
    return str(int(x)) if isinstance(x, (bool, int)) else f"{x:.9g}"


lines = []
while len(lines) < 240:
    threshold, n = r.choice([0.3, 1.0, 2.0]), r.choice([250, 3000, 7000, 7000])
    model, windows[:] = Model(), []
    model.n = n
    kept = transcribing.transcribe(
        model, n, temperature=0.0, language="en", fp16=False, word_timestamps=True,
        hallucination_silence_threshold=threshold, verbose=None,
    )["segments"]  # fmt: skip
    for w, after in zip(windows, windows[1:] + [{"seek": n}]):
        stays = [s for s in kept if s["seek"] == w["seek"]]
        plain = w["used"] if w["plain"] is None else w["plain"]
        row = [threshold, w["seek"], n, w["used"], w["last"], w["ends"], plain, after["seek"] - w["seek"], len(w["segments"]), len(stays)]
        for s, words in zip(w["segments"], w["words"]):
            row += [s["start"], s["end"], len(words)]
            for word in words:
                row += [word["start"], word["end"], word["probability"], word["word"] == "."]
        lines.append(" ".join(number(x) for x in row))
(pathlib.Path(sys.argv[2]) / "hallucination.txt").write_text("\n".join(lines[:240:5]) + "\n")
