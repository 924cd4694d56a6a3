#!/usr/bin/env python3
"""Checks that akunu decodes audio clips as openai-whisper does, which runs ffmpeg: clips of many containers, codecs, rates
and channels, whole, joined, cut, damaged and piped.

    audio_clips.py BUILD SPEECH [--only TEXT] [--keep FOLDER] [--all]

Needs ffmpeg with libmp3lame, libopus and libvorbis, and numpy. Run `make tests/speech/audio/decode` in BUILD first: it writes the
samples that the library reads. SPEECH is a clip of at least 8 seconds, such as jfk-44k-stereo.flac.

ffmpeg's samples are those of whisper.audio.load_audio: `ffmpeg -i CLIP -f s16le -ac 1 -ar 16000 -`. ffmpeg reads only the first
of some files that were joined, so the samples of the parts, decoded one by one, are right for them too. ffmpeg's own decoder of
Opus differs from libopus, the reference that akunu uses, in stereo at low bit rates: what ffmpeg decodes with `-c:a libopus` is
right, too. akunu's samples are the same if

    seconds       differ by at most 20 ms, or a frame of the codec if that is longer (GSM: 40 ms, MP3: 1152 or 576 samples)
    lag           is at most 4 samples (0.25 ms), so that encoder delays are dropped as in ffmpeg
    correlation   is at least 0.999 below 7 kHz (and below 0.42 of the clip's rate: resamplers differ near the limit)
    smallest      correlation of the pieces of 0.25 s is at least 0.99, so that no packet is missing in between
    level         differs by at most 1 %

A clip of several parts is compared part by part, and the worst number is shown. The samples of a clip that was cut need not end
where ffmpeg's do: what is left of the last packet (at most 0.15 s) may be read or not.

    same      both decode the same
    warning   akunu reads a part of the clip, as ffmpeg would, and says what it did not read; of a clip that is damaged in the
              middle, the first 40 % are compared
    error     akunu refuses the clip, and says how to convert it, or ffmpeg does not read it either
    WRONG     all else, and an error or a warning where the table of this script expects samples

Prints one row per clip, then a total; exits 1 if a clip is WRONG. --all shows messages in full.
"""
import argparse
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np

RATE = 16000
LAG_MAX, SHIFT = 4, 2400
SECONDS_MAX, CUT_MAX = 0.02, 0.15
CORRELATION, SMALLEST, LEVEL = 0.999, 0.99, 0.01
SAME, WARNING, ERROR, WRONG = "same", "warning", "error", "WRONG"

# name: file ending, ffmpeg's flags, whether akunu decodes it
CODECS = {
    "wav u8": ("wav", "-c:a pcm_u8", True),
    "wav s16": ("wav", "-c:a pcm_s16le", True),
    "wav s24": ("wav", "-c:a pcm_s24le", True),
    "wav s32": ("wav", "-c:a pcm_s32le", True),
    "wav f32": ("wav", "-c:a pcm_f32le", True),
    "wav f64": ("wav", "-c:a pcm_f64le", True),
    "wav mu-law": ("wav", "-c:a pcm_mulaw", True),
    "wav a-law": ("wav", "-c:a pcm_alaw", True),
    "wav ima-adpcm": ("wav", "-c:a adpcm_ima_wav", True),
    "wav ms-adpcm": ("wav", "-c:a adpcm_ms", True),
    "wav gsm": ("wav", "-c:a libgsm_ms -ar 8000 -ac 1", True),
    "wav g726": ("wav", "-c:a g726 -ar 8000 -ac 1", False),
    "wav mp3": ("wav", "-c:a libmp3lame", True),
    "rf64": ("wav", "-c:a pcm_s16le -rf64 always", True),
    "w64": ("w64", "-c:a pcm_s16le", True),
    "aiff": ("aiff", "-c:a pcm_s16be", True),
    "aifc sowt": ("aif", "-c:a pcm_s16le -f aiff", True),
    "aifc mu-law": ("aiff", "-c:a pcm_mulaw", True),
    "au": ("au", "-c:a pcm_s16be", True),
    "au mu-law": ("au", "-c:a pcm_mulaw", True),
    "caf": ("caf", "-c:a pcm_s16le", True),
    "caf alac": ("caf", "-c:a alac", False),
    "voc": ("voc", "-c:a pcm_u8", False),
    "flac": ("flac", "-c:a flac", True),
    "flac s24": ("flac", "-c:a flac -sample_fmt s32", True),
    "ogg vorbis": ("ogg", "-c:a libvorbis", True),
    "ogg opus": ("opus", "-c:a libopus", True),
    "ogg opus voip": ("opus", "-c:a libopus -application voip -b:a 12k -frame_duration 60", True),
    "ogg opus 2.5 ms": ("opus", "-c:a libopus -application lowdelay -frame_duration 2.5", True),
    "ogg flac": ("oga", "-c:a flac", True),
    "ogg speex": ("spx", "-c:a libspeex", False),
    "mp3 cbr": ("mp3", "-c:a libmp3lame -b:a 64k", True),
    "mp3 vbr": ("mp3", "-c:a libmp3lame -q:a 4", True),
    "mp3 vbr no xing": ("mp3", "-c:a libmp3lame -q:a 4 -write_xing 0 -id3v2_version 0", True),
    "mp2": ("mp2", "-c:a mp2 -b:a 96k", True),
    "webm opus": ("webm", "-c:a libopus", True),
    "webm vorbis": ("webm", "-c:a libvorbis", True),
    "mka opus": ("mka", "-c:a libopus", True),
    "mka flac": ("mka", "-c:a flac", True),
    "mka pcm": ("mka", "-c:a pcm_s16le", True),
    "mka f32": ("mka", "-c:a pcm_f32le", True),
    "mka mp3": ("mka", "-c:a libmp3lame", True),
    "mka aac": ("mka", "-c:a aac", False),
    "m4a aac": ("m4a", "-c:a aac", False),
    "m4a alac": ("m4a", "-c:a alac", False),
    "mp4 aac": ("mp4", "-c:a aac", False),
    "mov pcm": ("mov", "-c:a pcm_s16le", False),
    "aac adts": ("aac", "-c:a aac", False),
    "wma": ("wma", "-c:a wmav2", False),
    "ac3": ("ac3", "-c:a ac3", False),
    "eac3": ("eac3", "-c:a eac3", False),
    "dts": ("dts", "-c:a dca -strict -2", False),
    "wavpack": ("wv", "-c:a wavpack", False),
    "tta": ("tta", "-c:a tta", False),
    "flv mp3": ("flv", "-c:a libmp3lame", False),
    "avi mp3": ("avi", "-c:a libmp3lame", False),
    "mpeg-ts aac": ("ts", "-c:a aac", False),
    "3gp aac": ("3gp", "-c:a aac", False),
}
# codec: (rate, channels), …
LAYOUTS = {
    "wav u8": [(8000, 1), (22050, 2)],
    "wav s16": [(8000, 1), (11025, 1), (16000, 1), (22050, 2), (24000, 1), (32000, 2), (44100, 2), (48000, 6), (96000, 2),
                (192000, 1)],
    "wav s24": [(16000, 2), (48000, 6)],
    "wav mu-law": [(8000, 1), (8000, 2)],
    "wav a-law": [(8000, 1)],
    "aiff": [(44100, 2), (48000, 6)],
    "caf": [(44100, 2), (48000, 6)],
    "flac": [(16000, 1), (44100, 2), (48000, 3), (48000, 4), (48000, 5), (48000, 6), (48000, 8), (96000, 2)],
    "ogg vorbis": [(8000, 1), (22050, 1), (44100, 2), (48000, 3), (48000, 6)],
    "ogg opus": [(8000, 1), (16000, 1), (24000, 2), (48000, 2), (48000, 6)],
    "mp3 cbr": [(8000, 1), (11025, 1), (12000, 2), (16000, 2), (22050, 1), (24000, 1), (32000, 2), (44100, 2), (48000, 1)],
    "mp3 vbr": [(16000, 1), (22050, 2), (44100, 2), (48000, 2)],
    "webm opus": [(16000, 1), (48000, 2), (48000, 6)],
    "mka pcm": [(22050, 2), (48000, 6)],
}
JOINED = ["wav s16", "wav mu-law", "rf64", "w64", "aiff", "au", "caf", "flac", "ogg vorbis", "ogg opus", "ogg flac", "mp3 cbr",
          "mp3 vbr", "mp3 vbr no xing", "webm opus", "mka flac"]
CUT = ["wav s16", "wav f32", "wav ima-adpcm", "rf64", "w64", "aiff", "au", "caf", "flac", "ogg vorbis", "ogg opus", "ogg flac",
       "mp3 cbr", "mp3 vbr", "mp3 vbr no xing", "mp2", "webm opus", "webm vorbis", "mka flac", "mka pcm", "mka mp3", "m4a aac"]
PIPED = ["wav s16", "wav mu-law", "wav s24", "au", "aiff", "caf", "flac", "ogg vorbis", "ogg opus", "ogg flac", "mp3 cbr",
         "mp3 vbr", "webm opus", "mka pcm", "m4a aac"]


def ffmpeg(*arguments, source=None):
    """Standard output of ffmpeg, which may fail."""
    return subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-y", *arguments] if source is None else
                          ["ffmpeg", "-v", "error", "-y", *arguments], input=source, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False).stdout


def ffmpeg_samples(path, decoder=()):
    """What openai-whisper reads, which raises an error where this is empty."""
    out = ffmpeg(*decoder, "-i", str(path), "-f", "s16le", "-ac", "1", "-acodec", "pcm_s16le", "-ar", str(RATE), "-")
    return np.frombuffer(out, np.int16).astype(np.float64) / 32768


def akunu_samples(build, path, piped):
    """Samples, the error or "", the warning or ""."""
    command = [f"{build}/tests/speech/audio/decode", "-" if piped else str(path)]
    done = subprocess.run(command, input=path.read_bytes() if piped else b"", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False)
    said = done.stderr.decode(errors="replace").strip()
    if done.returncode != 0:
        return np.zeros(0), said or f"exit status {done.returncode}", ""
    lines = said.rsplit("\n", 1)
    stated, found, *warning = lines[-1].split(" ", 2)
    warning = [*lines[:-1], *(w for w in warning if w)]
    if float(stated) > 0 and abs(float(stated) - float(found)) > 0.1:  # as `akunu-cli transcribe` warns
        warning.append(f"ends after {float(found):.1f} s; its header says {float(stated):.1f} s")
    return np.frombuffer(done.stdout, np.float32).astype(np.float64), "", "; ".join(warning)


def frame_seconds(name, rate):
    if "gsm" in name:
        return 0.0401
    return (1152 if rate >= 32000 else 576) / rate if "mp3" in name or "mp2" in name else 0.0


# ---- Comparison ------------------------------------------------------------------
def low_pass(samples, hertz):
    spectrum = np.fft.rfft(samples)
    spectrum[np.fft.rfftfreq(len(samples), 1 / RATE) > hertz] = 0
    return np.fft.irfft(spectrum, len(samples))


def best_lag(ours, expected):
    """By how many samples ours are late."""
    size = 1 << int(np.ceil(np.log2(len(ours) + len(expected))))
    cross = np.fft.irfft(np.fft.rfft(ours, size) * np.conj(np.fft.rfft(expected, size)), size)
    lags = np.r_[0:SHIFT, size - SHIFT:size]
    lag = int(lags[np.argmax(cross[lags])])
    return lag - size if lag >= size - SHIFT else lag


def correlate(a, b):
    power = np.sqrt((a * a).sum() * (b * b).sum())
    return float((a * b).sum() / power) if power > 0 else 0.0


class Numbers:
    """How far akunu's samples are from the expected ones."""

    def __init__(self):
        self.seconds, self.lag, self.correlation, self.smallest, self.level = 0.0, 0, 1.0, 1.0, 0.0

    def add(self, ours, expected, hertz):
        """Takes a part in: ours may be longer or shorter."""
        n = min(len(ours), len(expected))
        if n < RATE // 10:
            if n and np.abs(ours[:n] - expected[:n]).max() > 0.05:
                self.correlation = 0.0
            return
        ours, expected = ours[:n], expected[:n]
        if np.abs(expected).max() < 0.001:  # silence
            self.correlation = min(self.correlation, float(np.abs(ours).max() < 0.001))
            return
        lag = best_lag(ours, expected)
        self.lag = max(self.lag, lag, key=abs)
        ours, expected = (ours[lag:], expected[:n - lag]) if lag >= 0 else (ours[:n + lag], expected[-lag:])
        ours, expected = low_pass(ours, hertz), low_pass(expected, hertz)
        self.correlation = min(self.correlation, correlate(ours, expected))
        rms = np.sqrt((expected ** 2).mean())
        self.level = max(self.level, np.sqrt((ours ** 2).mean()) / rms - 1, key=abs)
        for at in range(0, len(ours) - RATE // 4, RATE // 4):
            piece = slice(at, at + RATE // 4)
            if np.sqrt((expected[piece] ** 2).mean()) > 0.1 * rms:
                self.smallest = min(self.smallest, correlate(ours[piece], expected[piece]))

    def are_same(self, seconds_max):
        return (abs(self.seconds) <= seconds_max and abs(self.lag) <= LAG_MAX and self.correlation >= CORRELATION and
                self.smallest >= SMALLEST and abs(self.level) <= LEVEL)

    def row(self):
        return (f"{1000 * self.seconds:+8.1f}", f"{self.lag:+5d}", f"{self.correlation:.6f}", f"{self.smallest:.5f}",
                f"{100 * self.level:+6.2f}")


def compare(ours, parts, hertz):
    """`parts`: the expected samples of each."""
    numbers = Numbers()
    numbers.seconds = (len(ours) - sum(len(p) for p in parts)) / RATE
    at = 0
    for i, part in enumerate(parts):
        numbers.add(ours[at:] if i + 1 == len(parts) else ours[at:at + len(part)], part, hertz)
        at += len(part)
    return numbers


# ---- Clips -----------------------------------------------------------------------
class Clips:
    """Makes clips, compares them and counts the verdicts."""

    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, pathlib.Path(folder)
        self.files, self.skipped = {}, []
        self.counts = dict.fromkeys((SAME, WARNING, ERROR, WRONG), 0)
        speech = np.frombuffer(ffmpeg("-i", arguments.speech, "-f", "f32le", "-ac", "1", "-ar", "48000", "-"), np.float32)
        if len(speech) < 8 * 48000:
            sys.exit(f"audio_clips.py: {arguments.speech}: {len(speech) / 48000:.1f} s of audio; expected at least 8 s")
        self.speech = speech * (0.5 / np.abs(speech).max())

    def write(self, name, content):
        path = self.folder / name
        path.write_bytes(content)
        return path

    def encode(self, codec, rate, channels, begin=0.0, seconds=3.0, source=None, to_pipe=False, flags=()):
        """A file of speech from `begin` on, another piece of it in each channel. None: ffmpeg does not write it."""
        key = codec, rate, channels, begin, seconds, to_pipe, flags
        if source is not None or key not in self.files:
            ending, own, _ = CODECS[codec]
            at, n = int(begin * 48000), int(seconds * 48000)
            shift = len(self.speech) // channels
            sound = source
            if source is None:
                sound = np.stack([np.roll(self.speech, -at - c * shift)[:n] for c in range(channels)], 1)
            path = self.folder / f"{codec} {rate} {channels} {len(self.files)}.{ending}".replace(" ", "-")
            form = {"mka": "matroska", "opus": "ogg", "oga": "ogg", "wv": "wv", "aif": "aiff"}.get(ending, ending)
            target = ["-f", form, "-"] if to_pipe else [str(path)]
            out = ffmpeg("-f", "f32le", "-ar", "48000", "-ac", str(channels), *flags, "-i", "-", "-ar", str(rate),
                         *own.split(), *flags, *target, source=sound.astype("<f4").tobytes())
            if to_pipe:
                path.write_bytes(out)
            self.files[key] = path if path.exists() and path.stat().st_size > 0 else None
        return self.files[key]

    def check(self, name, path, parts=None, may=(SAME,), rate=RATE, is_cut=False, is_damaged=False, piped=False):
        """`may`: the verdicts that are right. `parts`: the files that it was made of, if it was joined."""
        if self.arguments.only and self.arguments.only not in name:
            return
        if path is None:
            self.skipped.append(name)
            return
        ours, error, warning = akunu_samples(self.arguments.build, path, piped)
        whole = ffmpeg_samples(path)
        hertz = min(7000.0, 0.42 * rate)
        numbers = compare(ours, [whole], hertz)
        limit = CUT_MAX if is_cut else max(SECONDS_MAX, frame_seconds(name, rate))
        if not numbers.are_same(limit) and "opus" in name:
            numbers = compare(ours, [ffmpeg_samples(path, ("-c:a", "libopus"))], hertz)
        if parts and not numbers.are_same(limit):
            numbers = compare(ours, [ffmpeg_samples(p) for p in parts], hertz)
        if error:
            is_clear = error.startswith("-: " if piped else f"{path}: ")  # and decoders print nothing of their own
            verdict = ERROR if is_clear and ("convert it" in error or len(whole) == 0) else WRONG
        elif numbers.are_same(limit):
            verdict = SAME
        else:
            n = len(whole) * 2 // 5 if is_damaged else len(ours)
            numbers_of_start = compare(ours[:n], [whole[:n]], hertz)
            verdict = WARNING if warning and numbers_of_start.are_same(limit) else WRONG
        if verdict not in may:
            verdict = WRONG
        self.counts[verdict] += 1
        said = (error or warning).replace(str(self.folder) + "/", "").replace("\n", " / ")
        cells = [f"{name:38}", f"{len(whole) / RATE:7.3f}", f"{len(ours) / RATE:7.3f}"]
        cells += numbers.row() if not error else (" " * 8, " " * 5, " " * 8, " " * 7, " " * 6)
        print("  ".join([*cells, f"{verdict:7}", said if self.arguments.all else said[:70]]).rstrip(), flush=True)

    def run(self):
        print("  ".join([f"{'clip':38}", f"{'ffmpeg':>7}", f"{'akunu':>7}", f"{'ms':>8}", f"{'lag':>5}", f"{'corr.':8}",
                         f"{'small.':7}", f"{'% lvl':>6}", "verdict"]))
        self.run_whole()
        self.run_joined()
        self.run_cut()
        self.run_piped()
        self.run_headers()
        self.run_extremes()

    def run_whole(self):
        layouts = {3: "3.0", 4: "quad"}  # FLAC's own, which need no comment
        for codec, (_, _, is_read) in CODECS.items():
            for rate, channels in LAYOUTS.get(codec, [(44100, 2), (16000, 1)] if is_read else [(44100, 2)]):
                if "opus" in codec and rate == 44100:
                    rate = 48000
                layout = layouts.get(channels) if codec == "flac" else None
                path = self.encode(codec, rate, channels, flags=("-channel_layout", layout) if layout else ())
                if codec == "wav gsm" or codec == "wav g726":
                    rate = 8000
                self.check(f"{codec} {rate} x {channels}", path, may=(SAME,) if is_read else (ERROR,), rate=rate)
                if rate == 8000 and codec.startswith("wav g"):
                    break

    def run_joined(self):
        for codec in JOINED:
            rates = [(16000, 1), (16000, 1)], [(16000, 1), (48000 if "opus" in codec else 44100, 2)]
            for (first, one), (second, two) in rates:
                a, b = self.encode(codec, first, one), self.encode(codec, second, two, 4.0, 2.0)
                path = self.write(f"joined-{second}-{a.name}", b"".join(p.read_bytes() for p in (a, b, a)))
                self.check(f"joined {codec} {first} + {second}", path, [a, b, a])
        kinds = [self.encode("mp3 vbr", 44100, 2), self.encode("ogg opus", 48000, 2), self.encode("wav s16", 16000, 1)]
        self.check("joined mp3 + opus + wav", self.write("kinds.mp3", b"".join(p.read_bytes() for p in kinds)), kinds)
        kinds = [self.encode("flac", 16000, 1), self.encode("m4a aac", 44100, 2)]
        self.check("joined flac + m4a", self.write("kinds.flac", b"".join(p.read_bytes() for p in kinds)), kinds,
                   may=(SAME, WARNING))

    def run_cut(self):
        for codec in CUT:
            a = self.encode(codec, 48000 if "opus" in codec else 44100, 2)
            data = a.read_bytes()
            path = self.write(f"cut-{a.name}", data[:len(data) * 6 // 10])
            may = (SAME, WARNING) if CODECS[codec][2] else (ERROR,)
            self.check(f"cut {codec}", path, may=may, is_cut=True, rate=44100)
        a = self.encode("mp3 vbr", 44100, 2)
        self.check("cut in front mp3 vbr", self.write("front.mp3", a.read_bytes()[5000:]), may=(SAME, WARNING), is_cut=True)
        for codec in ("flac", "ogg vorbis", "ogg opus", "webm opus", "mp3 vbr"):
            a = self.encode(codec, 48000, 2)
            self.check(f"header alone {codec}", self.write(f"head-{a.name}", a.read_bytes()[:60]), may=(ERROR,))
        for codec in ("flac", "ogg vorbis", "ogg opus", "mp3 vbr", "webm opus"):
            a = self.encode(codec, 48000, 2)
            data = bytearray(a.read_bytes())
            middle = len(data) // 2
            data[middle:middle + 300] = bytes(300)
            self.check(f"300 zeros within {codec}", self.write(f"zeros-{a.name}", data), may=(SAME, WARNING),
                       is_damaged=True)

    def run_piped(self):
        for codec in PIPED:
            rate = 48000 if "opus" in codec else 44100
            a = self.encode(codec, rate, 2, to_pipe=codec not in ("aiff", "m4a aac"))
            self.check(f"piped {codec}", a, may=(SAME,) if CODECS[codec][2] else (ERROR,), piped=True, rate=rate)
        a, b = self.encode("ogg opus", 16000, 1), self.encode("ogg opus", 48000, 2, 4.0, 2.0)
        self.check("piped joined ogg opus", self.write("piped.opus", a.read_bytes() + b.read_bytes()), [a, b], piped=True)
        self.check("piped nothing", self.write("nothing.wav", b""), may=(ERROR,), piped=True)

    def run_headers(self):
        """Headers of killed recorders, tags, pictures, what stands before and after the sound."""
        a = self.encode("wav s16", 16000, 1)
        for size in (0, 0x7fffffff, 0xffffffff):
            data = bytearray(a.read_bytes())
            at = data.index(b"data") + 4
            data[4:8] = data[at:at + 4] = size.to_bytes(4, "little")
            self.check(f"wav with size {size:#x}", self.write(f"size-{size}.wav", data), [a])
            self.check(f"piped wav with size {size:#x}", self.write(f"size-{size}.wav", data), [a], piped=True)
        data = a.read_bytes()
        at = data.index(b"data")
        chunk = b"bext" + struct.pack("<I", 603) + bytes(604)
        self.check("wav with an odd chunk", self.write("odd.wav", data[:at] + chunk + data[at:]), [a])
        chunk = b"id3 " + struct.pack("<I", 40) + b"ID3\3\0\0\0\0\0\x1e" + bytes(30)
        self.check("wav with an id3 chunk after it", self.write("tag.wav", data + chunk), [a])
        self.check("wav with zeros after it", self.write("zeros.wav", data + bytes(2000)), [a])
        junk = np.random.default_rng(3).integers(0, 256, 20000, np.uint8).tobytes()
        for codec in ("wav s16", "flac", "ogg vorbis", "ogg opus", "mp3 vbr", "webm opus", "aiff", "caf"):
            b = self.encode(codec, 48000, 2)
            self.check(f"20,000 bytes of noise after {codec}", self.write(f"junk-{b.name}", b.read_bytes() + junk), [b],
                       may=(SAME, WARNING), rate=48000)
        picture = self.folder / "picture.jpg"
        ffmpeg("-f", "lavfi", "-i", "testsrc=size=640x480:duration=1", "-frames:v", "1", str(picture))
        for codec in ("mp3 vbr", "flac"):
            b = self.encode(codec, 44100, 2)
            to = self.folder / f"picture-{b.name}"
            ffmpeg("-i", str(b), "-i", str(picture), "-map", "0:a", "-map", "1:v", "-c", "copy", "-metadata", "title=A title",
                   "-disposition:v", "attached_pic", str(to))
            self.check(f"{codec} with a picture", to, rate=44100)
            tagged = self.write(f"tagged-{b.name}", b"ID3\3\0\0\0\0\2\0" + bytes(256) + b.read_bytes())
            self.check(f"{codec} behind an ID3v2 tag", tagged, [b], rate=44100)
        b = self.encode("mp3 cbr", 44100, 2)
        tag = b"TAG" + b"title".ljust(125, b"\0")
        self.check("mp3 with ID3v1", self.write("v1.mp3", b.read_bytes() + tag), [b], rate=44100)
        self.check("mp3 with ID3v1, joined", self.write("v1s.mp3", (b.read_bytes() + tag) * 2), [b, b], rate=44100)
        b = self.encode("mp3 vbr", 44100, 2)
        data = b.read_bytes()
        unnamed = data
        for encoder in (b"LAME", b"Lavf", b"Lavc"):
            unnamed = unnamed.replace(encoder, bytes(4))
        self.check("mp3 whose Xing header names no encoder", self.write("unnamed.mp3", unnamed), rate=44100)
        at = data.index(b"Xing") + 8
        more = data[:at] + (20).to_bytes(4, "big") + data[at + 4:]
        # ffmpeg drops the padding of the end after the 20 frames, in the middle of the speech
        self.check("mp3 of more frames than Xing counts", self.write("more.mp3", more), [b], rate=44100)
        flac = bytearray(self.encode("flac", 44100, 2).read_bytes())
        flac[21] &= 0xf0
        flac[22:26] = bytes(4)
        self.check("flac without a count", self.write("uncounted.flac", flac), rate=44100)
        self.check("a wrong name", self.write("opus.wav", self.encode("ogg opus", 48000, 2).read_bytes()), rate=48000)

    def run_extremes(self):
        for codec in ("wav s16", "flac", "ogg vorbis", "ogg opus", "mp3 vbr", "webm opus", "mka flac"):
            one, silent = np.full((1, 1), 0.25, np.float32), np.zeros((48000, 2), np.float32)
            may = (SAME, ERROR) if codec != "wav s16" else (SAME,)
            self.check(f"one sample {codec}", self.encode(codec, 48000, 1, seconds=0.001, source=one), may=may)
            self.check(f"silence {codec}", self.encode(codec, 48000, 2, seconds=1.0, source=silent))
            loud = np.clip(40 * np.stack([self.speech[:96000]] * 2, 1), -1, 1)
            self.check(f"loud {codec}", self.encode(codec, 48000, 2, seconds=2.0, source=loud), rate=48000)
            self.check(f"0.1 s {codec}", self.encode(codec, 48000, 2, 1.0, 0.1), rate=48000)
        for name in ("empty.wav", "empty.mp3"):
            self.check(name, self.write(name, b""), may=(ERROR,))
        data = self.encode("wav s16", 16000, 1).read_bytes()
        header = data[:data.index(b"data")] + b"data\0\0\0\0"
        self.check("wav without a sample", self.write("none.wav", header), may=(ERROR,))
        self.check("a text", self.write("text.wav", b"This is no audio.\n" * 400), may=(ERROR,))
        noise = np.random.default_rng(1).integers(0, 256, 50000, np.uint8).tobytes()
        self.check("noise", self.write("noise.mp3", noise), may=(ERROR,))
        self.check("amr", self.write("amr.amr", b"#!AMR\n" + bytes(1000)), may=(ERROR,))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("speech")
    parser.add_argument("--only", metavar="TEXT", help="only clips with this text in their name")
    parser.add_argument("--keep", metavar="FOLDER", help="write the clips there and keep them")
    parser.add_argument("--all", action="store_true", help="show messages in full")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if arguments.keep:
            pathlib.Path(arguments.keep).mkdir(parents=True, exist_ok=True)
        clips = Clips(arguments, arguments.keep or scratch)
        clips.run()
    if clips.skipped:
        print("not written by this ffmpeg: " + ", ".join(clips.skipped))
    print(f"{sum(clips.counts.values())} clips: " + ", ".join(f"{n} {verdict}" for verdict, n in clips.counts.items()))
    return 1 if clips.counts[WRONG] else 0


if __name__ == "__main__":
    sys.exit(main())
