#!/usr/bin/env python3
"""Log-mel frames of openai/whisper for tests/speech/audio/test_mel.c.

    mel.py > tests/data/mel.txt     (openai-whisper)

The clip is made of integers, which test_mel.c makes again. For 80 and 128 mels: of every 23rd frame every 7th mel, of the clip
with 30 s of zeros after it. A line of both counts stands before those of the frames.
"""
import numpy as np
import whisper.audio

SAMPLES, RATE, STEP_FRAMES, STEP_MELS = 50000, 16000, 23, 7


def clip():
    """Noise whose loudness grows, and a chirp, in 1/32768."""
    noise, out = 12345, []
    for i in range(SAMPLES):
        noise = (noise * 1103515245 + 12345) & 0x7FFFFFFF
        phase = i * (200 + i // 16) % RATE
        triangle = phase if phase < RATE // 2 else RATE - phase
        out.append((((noise >> 16) - 16384) * (i // 64) >> 12) + triangle)
    return np.array(out, np.float32) / 32768


def main():
    for n_mels in (80, 128):
        logs = whisper.audio.log_mel_spectrogram(clip(), n_mels, padding=30 * RATE).numpy().T
        rows = logs[: SAMPLES // 160 + 60 : STEP_FRAMES, ::STEP_MELS]
        print(n_mels, rows.shape[0])
        for row in rows:
            print(" ".join(f"{x:.8g}" for x in row))


if __name__ == "__main__":
    main()
