#!/usr/bin/env python3
"""Audio clips of many containers, codecs, rates and channels, whole, joined, cut and piped: what
akunu reads of them beside ffmpeg. Prints a table in Markdown; exits 1 if a clip is read otherwise
without a warning or an error.

usage: clips.py BUILD AUDIO [--speech MODEL WHISPER] (needs ffmpeg and numpy; `make
tests/speech/audio/decode` in BUILD first)

AUDIO has speech, such as jfk-44k-stereo.flac. Lengths: of ffmpeg for the clip, of ffmpeg for its
parts one by one, and ours. The correlation is the smallest of the parts', each at its best shift of
up to 0.15 s. With --speech the texts of some clips by `akunu-cli transcribe -m MODEL` are compared
with those of openai-whisper's checkpoint WHISPER, by words.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

RATE = 16000
SHIFT = int(0.15 * RATE)
TOLERANCE = 0.12  # seconds per part: what encoders add at both ends
WHOLE, JOINED, CUT, PIPED = "whole", "joined", "cut", "piped"

# name, extension, ffmpeg's flags for the output
CODECS = [
    ("WAV 8 bits", "wav", "-c:a pcm_u8"),
    ("WAV 16 bits", "wav", "-c:a pcm_s16le"),
    ("WAV 24 bits", "wav", "-c:a pcm_s24le"),
    ("WAV 32 bits", "wav", "-c:a pcm_s32le"),
    ("WAV float", "wav", "-c:a pcm_f32le"),
    ("WAV double", "wav", "-c:a pcm_f64le"),
    ("WAV mu-law", "wav", "-c:a pcm_mulaw"),
    ("WAV A-law", "wav", "-c:a pcm_alaw"),
    ("WAV IMA ADPCM", "wav", "-c:a adpcm_ima_wav"),
    ("WAV MS ADPCM", "wav", "-c:a adpcm_ms"),
    ("WAV GSM", "wav", "-c:a gsm_ms -ar 8000 -ac 1"),
    ("WAV MP3", "wav", "-c:a libmp3lame"),
    ("RF64", "wav", "-c:a pcm_s16le -rf64 always"),
    ("Wave64", "w64", "-c:a pcm_s16le"),
    ("AIFF", "aiff", "-c:a pcm_s16be"),
    ("AIFF-C mu-law", "aiff", "-c:a pcm_mulaw"),
    ("AU", "au", "-c:a pcm_s16be"),
    ("CAF", "caf", "-c:a pcm_s16le"),
    ("FLAC", "flac", "-c:a flac"),
    ("Ogg Vorbis", "ogg", "-c:a libvorbis"),
    ("Ogg Opus", "opus", "-c:a libopus"),
    ("Ogg FLAC", "ogg", "-c:a flac -f ogg"),
    ("MP3 CBR", "mp3", "-c:a libmp3lame -b:a 64k"),
    ("MP3 VBR", "mp3", "-c:a libmp3lame -q:a 4"),
    ("MP3 VBR without header", "mp3", "-c:a libmp3lame -q:a 4 -write_xing 0 -id3v2_version 0"),
    ("MP2", "mp2", "-c:a mp2 -b:a 96k"),
    ("WebM Opus", "webm", "-c:a libopus"),
    ("WebM Vorbis", "webm", "-c:a libvorbis"),
    ("Matroska Opus", "mka", "-c:a libopus"),
    ("Matroska FLAC", "mka", "-c:a flac"),
    ("Matroska PCM", "mka", "-c:a pcm_s16le"),
    ("Matroska MP3", "mka", "-c:a libmp3lame"),
    ("MP4 AAC", "mp4", "-c:a aac"),
    ("M4A Apple Lossless", "m4a", "-c:a alac"),
    ("AAC ADTS", "aac", "-c:a aac"),
    ("WMA", "wma", "-c:a wmav2"),
    ("Matroska AAC", "mka", "-c:a aac"),
]
# rate and channels of whole clips; of a codec that has others, ffmpeg takes them from the flags
RATES = [(8000, 1), (11025, 2), (16000, 1), (22050, 1), (44100, 2), (48000, 2), (96000, 1)]
MORE = [("WAV 16 bits", 192000, 1), ("FLAC", 192000, 2), ("WAV 16 bits", 48000, 6),
        ("FLAC", 44100, 6), ("Ogg Vorbis", 48000, 6), ("Ogg Opus", 48000, 6),
        ("WebM Opus", 48000, 6), ("AIFF", 48000, 4), ("Matroska PCM", 48000, 6)]
JOINS = ["WAV 16 bits", "WAV mu-law", "RF64", "Wave64", "AIFF", "AU", "CAF", "FLAC", "Ogg Vorbis",
         "Ogg Opus", "Ogg FLAC", "MP3 CBR", "MP3 VBR", "MP3 VBR without header", "WebM Opus",
         "Matroska FLAC"]
CUTS = ["WAV 16 bits", "AIFF", "CAF", "FLAC", "Ogg Vorbis", "Ogg Opus", "Ogg FLAC", "MP3 CBR",
        "MP3 VBR", "WebM Opus", "Matroska FLAC"]
PIPES = ["WAV 16 bits", "WAV mu-law", "AU", "CAF", "FLAC", "Ogg Vorbis", "Ogg Opus", "MP3 CBR",
         "MP3 VBR", "WebM Opus", "Matroska PCM"]


def ffmpeg(*arguments, source=None):
    """Standard output of ffmpeg, which may fail."""
    return subprocess.run(["ffmpeg", "-v", "error", "-y", *arguments], input=source,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout


def ffmpeg_samples(path):
    """What openai-whisper reads."""
    out = ffmpeg("-i", str(path), "-f", "s16le", "-ar", str(RATE), "-ac", "1", "-")
    return np.frombuffer(out, np.int16).astype(np.float32) / 32768


def our_samples(build, path, piped):
    """Samples and what was said; the latter begins with "refused: " if there are none."""
    with open(path, "rb") as file:
        done = subprocess.run([f"{build}/tests/speech/audio/decode", "-" if piped else str(path)],
                              stdin=file, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=False)
    said = done.stderr.decode().strip().rsplit("\n", 1)[-1]
    if done.returncode != 0:
        return np.zeros(0, np.float32), "refused: " + said.split(": ", 1)[-1]
    stated, found, *warning = said.split(" ", 2)
    warning = [w for w in warning if w]
    if float(stated) > 0 and abs(float(stated) - float(found)) > 0.1:
        warning.append(f"ends after {found} s; its header says {stated} s")
    return np.frombuffer(done.stdout, np.float32), "; ".join(warning)


def correlation(ours, expected, begin):
    """The largest correlation of `expected` with ours near sample `begin`."""
    low = max(begin - SHIFT, 0)
    window = ours[low:begin + len(expected) + SHIFT]
    n = min(len(expected), len(window))
    if n < RATE // 10:
        return 0.0
    expected = expected[:n]
    size = 1 << int(np.ceil(np.log2(len(window) + n)))
    cross = np.fft.irfft(np.fft.rfft(window, size) * np.conj(np.fft.rfft(expected, size)), size)
    lags = np.r_[0:2 * SHIFT, size - SHIFT:size]
    lag = lags[np.argmax(cross[lags])]
    lag = lag - size if lag >= size - SHIFT else lag
    a, b = (window[lag:], expected) if lag >= 0 else (window, expected[-lag:])
    n = min(len(a), len(b))
    a, b = a[:n].astype(np.float64), b[:n].astype(np.float64)
    power = np.sqrt((a * a).sum() * (b * b).sum())
    return float((a * b).sum() / power) if power > 0 else 0.0


class Clips:
    """Makes clips, compares them and keeps the table's rows."""

    def __init__(self, build, audio, folder):
        self.build, self.audio, self.folder = build, audio, pathlib.Path(folder)
        self.rows, self.n_wrong, self.n_files = [], 0, 0
        self.files = {}

    def encode(self, codec, rate, channels, begin=0.0, seconds=2.0, to_pipe=False):
        """A file of speech from `begin` on. None: ffmpeg has no such encoder."""
        key = codec, rate, channels, begin, to_pipe
        if key not in self.files:
            _, extension, flags = next(c for c in CODECS if c[0] == codec)
            self.n_files += 1
            path = self.folder / f"{self.n_files}.{extension}"
            form = {"mka": "matroska", "opus": "ogg", "ogg": "ogg"}.get(extension, extension)
            target = ["-f", form, "-"] if to_pipe else [str(path)]
            out = ffmpeg("-ss", str(begin), "-t", str(seconds), "-i",
                         f"{self.audio}/jfk-44k-stereo.flac", "-ar", str(rate), "-ac",
                         str(channels), *flags.split(), *target)
            if to_pipe:
                path.write_bytes(out)
            self.files[key] = path if path.exists() and path.stat().st_size > 100 else None
        return self.files[key]

    def join(self, name, contents):
        path = self.folder / name
        path.write_bytes(b"".join(contents))
        return path

    def compare(self, name, form, layout, path, parts, piped=False):
        """`parts`: (path, channels) of each, or the clip itself."""
        ours, said = our_samples(self.build, path, piped)
        whole = len(ffmpeg_samples(path)) / RATE
        expected = [ffmpeg_samples(part) for part, _ in parts]
        sum_parts, n = sum(len(e) for e in expected) / RATE, len(ours) / RATE
        smallest, at = 1.0, 0
        for part in expected:
            smallest = min(smallest, correlation(ours, part, int(at * n / max(sum_parts, 1e-9))))
            at += len(part)
        is_right = abs(n - sum_parts) <= TOLERANCE * len(parts) and smallest > 0.97
        if form == CUT:  # what stands in the last, cut page may be read, too
            is_right = n >= sum_parts - TOLERANCE and smallest > 0.97
        self.n_wrong += not (is_right or said)
        verdict = "same" if is_right else "said" if said else "WRONG"
        self.rows.append((name, form, layout, f"{whole:.3f}", f"{sum_parts:.3f}", f"{n:.3f}",
                          f"{smallest:.4f}" if n else "", verdict, said[:90]))

    def run(self):
        for i, (codec, _, _) in enumerate(CODECS):
            for k in (i, i + 3):
                rate, channels = RATES[k % len(RATES)]
                path = self.encode(codec, rate, channels)
                if path:
                    self.compare(codec, WHOLE, f"{rate} × {channels}", path, [(path, channels)])
        for codec, rate, channels in MORE:
            path = self.encode(codec, rate, channels)
            if path:
                self.compare(codec, WHOLE, f"{rate} × {channels}", path, [(path, channels)])
        for codec in JOINS:
            a, b = self.encode(codec, 16000, 1), self.encode(codec, 44100, 2, 3.0)
            a, b = (a, b) if b else (a, self.encode(codec, 48000, 2, 3.0))
            path = self.join(f"joined-{a.name}", [x.read_bytes() for x in (a, b, a)])
            self.compare(codec, JOINED, "16000 × 1, 44100 × 2, 16000 × 1", path,
                         [(a, 1), (b, 2), (a, 1)])
        for codec in CUTS:
            a = self.encode(codec, 44100, 2) or self.encode(codec, 48000, 2)
            path = self.join(f"cut-{a.name}", [a.read_bytes()[:a.stat().st_size * 2 // 3]])
            self.compare(codec, CUT, "44100 × 2", path, [(path, 2)])
        for codec in PIPES:
            a = self.encode(codec, 44100, 2, to_pipe=True) or self.encode(codec, 48000, 2,
                                                                          to_pipe=True)
            self.compare(codec, PIPED, "44100 × 2", a, [(a, 2)], piped=True)
        self.run_others()

    def run_others(self):
        """Kinds mixed, headers that a killed recorder left, a picture in front."""
        wav, mp3 = self.encode("WAV 16 bits", 16000, 1), self.encode("MP3 VBR", 44100, 2, 3.0)
        ogg = self.encode("Ogg Opus", 48000, 2, 5.0)
        path = self.join("kinds.mp3", [x.read_bytes() for x in (mp3, ogg, wav)])
        self.compare("MP3, Ogg Opus, WAV", JOINED, "3 kinds", path, [(mp3, 2), (ogg, 2), (wav, 1)])
        for size in (0, 0xffffffff):
            data = bytearray(wav.read_bytes())
            at = data.index(b"data") + 4
            data[4:8] = data[at:at + 4] = size.to_bytes(4, "little")
            path = self.join(f"killed-{size}.wav", [data])
            self.compare("WAV 16 bits", f"sizes {size:#x}", "16000 × 1", path, [(wav, 1)])
        picture = b"ID3\x03\0\0" + bytes([0, 2, 0x1a, 0x10]) + b"\xff" * (2 * 16384 + 0x1a * 128 + 16)
        path = self.join("picture.mp3", [picture, mp3.read_bytes(), picture, mp3.read_bytes()])
        self.compare("MP3 VBR with pictures", JOINED, "44100 × 2", path, [(mp3, 2), (mp3, 2)])
        path = self.join("front.mp3", [mp3.read_bytes()[700:]])
        self.compare("MP3 VBR", "cut in front", "44100 × 2", path, [(path, 2)])
        path = self.join("amr.amr", [b"#!AMR\n" + bytes(1000)])
        self.compare("AMR", WHOLE, "8000 × 1", path, [(path, 1)])


def distance(a, b):
    """Words to change, insert or drop."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        last, row[0] = row[0], i + 1
        for k, y in enumerate(b):
            last, row[k + 1] = row[k + 1], min(row[k + 1] + 1, row[k] + 1, last + (x != y))
    return row[-1]


def compare_texts(clips, model, checkpoint):
    """Texts of clips as openai-whisper reads them by ffmpeg, and as akunu does."""
    import whisper  # pylint: disable=import-outside-toplevel

    loaded = whisper.load_model(checkpoint)
    print("\n| clip | words of openai-whisper | that differ |\n|---|---|---|")
    for codec, rate in (("WebM Opus", 48000), ("Ogg FLAC", 16000), ("MP3 VBR without header", 44100),
                        ("Ogg Vorbis", 44100)):
        first = clips.encode(codec, rate, 1, 0.0, 5.0)
        path = clips.join(f"text-{first.name}", [first.read_bytes()] * 2)
        theirs = loaded.transcribe(str(path), language="en", fp16=False, beam_size=5)["text"].split()
        out = subprocess.run([f"{clips.build}/akunu-cli", "transcribe", "-m", model, "--json",
                              str(path)], stdout=subprocess.PIPE, check=True).stdout
        ours = json.loads(out)["text"].split()
        print(f"| {codec}, joined | {len(theirs)} | {distance(theirs, ours)} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("audio")
    parser.add_argument("--speech", nargs=2, metavar=("MODEL", "WHISPER"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        clips = Clips(arguments.build, arguments.audio, folder)
        clips.run()
        print("| clip | | rates × channels | ffmpeg | its parts | akunu | correlation | | said |")
        print("|---|---|---|---|---|---|---|---|---|")
        for row in clips.rows:
            print("| " + " | ".join(row) + " |")
        print(f"\n{len(clips.rows)} clips, {clips.n_wrong} wrong")
        if arguments.speech:
            compare_texts(clips, *arguments.speech)
    return 1 if clips.n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
