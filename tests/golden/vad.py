#!/usr/bin/env python3
"""Writes tests/data/vad.txt: probabilities of speech by Silero's own network, and ranges of speech by
whisper.cpp, for tests/speech/vad/test_vad.c.

usage: vad.py SILERO.onnx LIBWHISPER.so MODEL.bin > tests/data/vad.txt

SILERO.onnx is silero_vad_16k_op15.onnx of silero-vad 6.2.0, run by onnxruntime 1.32.0; its weights of
convolutions are rounded to F16, as data/vad/silero-v6.2.0.bin (MODEL.bin) has them. LIBWHISPER.so is
whisper.cpp's, commit 233fe1fc: its rules for ranges are taken, not its probabilities, since it shows
the network a mirror image in place of the 64 samples before a window.
"""
import ctypes
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

SAMPLES = 64100
STEPS = 3000
# threshold, least speech and silence in ms, longest speech in s (0: any), pad in ms
PARAMS = [(0.5, 250, 100, 0, 30), (0.5, 250, 100, 6, 30), (0.3, 0, 500, 4, 200), (0.8, 1000, 0, 3, 0), (0.1, 100, 30, 1, 400), (0.5, 250, 2000, 2, 150)]


class Noise:
    """The generator of the C test: 15 random bits."""
    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state * 1103515245 + 12345) & 0x7fffffff
        return self.state >> 16


def clip():
    """What test_speech_clip of tests/speech_clip.h makes."""
    vowels = (((30880, 15815), (29175, 15691)), ((32013, 15815), (19952, 15691)), ((31971, 15815), (30214, 15691)),
              ((31499, 15815), (24054, 15691)), ((31391, 15815), (30339, 15691)))
    noise, phase, y, out = Noise(12345), 0, [[0, 0], [0, 0]], []
    for i in range(SAMPLES):
        vowel, at, pulse, random = i // 3200, i % 3200, 0, noise.next() - 16384
        loud = at if at < 600 else 600 if at < 2200 else max(2800 - at, 0)
        loud = 0 if vowel % 8 >= 6 else loud
        phase += 100 + i // 1600 % 7 * 6 - vowel % 5 * 3
        if phase >= 16000:
            phase, pulse = phase - 16000, loud * 4
        pulse += random * loud >> 18
        for k in range(2):
            a, b = vowels[vowel * 7 % 5][k]
            y[k] = [((a * y[k][0] - b * y[k][1]) >> 14) + pulse, y[k][0]]
        out.append(y[0][0] + (y[1][0] >> 1) + (random >> 9))
    return np.array(out, np.float32) / np.float32(32768)


def steps():
    """Probabilities in thousandths: runs that are likely, unlikely or between."""
    noise, out = Noise(777), []
    while len(out) < STEPS:
        level = (50, 420, 700, 950)[noise.next() % 4]
        for _ in range(1 + noise.next() % (8, 60)[noise.next() % 2]):
            out.append(min(max(level + noise.next() % 101 - 50, 0), 1000))
    return np.array(out[:STEPS], np.float32) / np.float32(1000)


def rounded(path):
    def visit(graph):
        for node in graph.node:
            for a in node.attribute:
                if a.type == onnx.AttributeProto.GRAPH:
                    visit(a.g)
                elif a.type == onnx.AttributeProto.TENSOR:
                    fix(a.t)
        for t in graph.initializer:
            fix(t)

    def fix(tensor):
        x = numpy_helper.to_array(tensor)
        if x.dtype == np.float32 and x.ndim == 3 and x.shape[0] in (258, 128, 64, 1) and x.size >= 128:
            tensor.CopyFrom(numpy_helper.from_array(x.astype(np.float16).astype(np.float32), tensor.name))
    model = onnx.load(path)
    visit(model.graph)
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def probabilities(model, x):
    state, context, out = np.zeros((2, 1, 128), np.float32), np.zeros((1, 64), np.float32), []
    x = np.pad(x, (0, -len(x) % 512))
    for at in range(0, len(x), 512):
        seen = np.concatenate([context, x[None, at:at + 512]], 1)
        p, state = model.run(None, {"input": seen, "state": state, "sr": np.array(16000, np.int64)})
        context = seen[:, -64:]
        out.append(float(p[0, 0]))
    return out


class VadParams(ctypes.Structure):
    _fields_ = [("threshold", ctypes.c_float), ("speech", ctypes.c_int), ("silence", ctypes.c_int), ("longest", ctypes.c_float), ("pad", ctypes.c_int), ("overlap", ctypes.c_float)]


class ContextParams(ctypes.Structure):
    _fields_ = [("threads", ctypes.c_int), ("gpu", ctypes.c_bool), ("device", ctypes.c_int)]


def ranges(library, model, probs):
    """Lets whisper.cpp compute as many probabilities, and puts others in their place."""
    w = ctypes.CDLL(library)
    for name, result, *arguments in (("init_from_file_with_params", ctypes.c_void_p, ctypes.c_char_p, ContextParams), ("probs", ctypes.POINTER(ctypes.c_float), ctypes.c_void_p),
                                     ("detect_speech", ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int), ("segments_from_probs", ctypes.c_void_p, ctypes.c_void_p, VadParams),
                                     ("segments_n_segments", ctypes.c_int, ctypes.c_void_p), ("segments_get_segment_t0", ctypes.c_float, ctypes.c_void_p, ctypes.c_int),
                                     ("segments_get_segment_t1", ctypes.c_float, ctypes.c_void_p, ctypes.c_int)):
        f = getattr(w, "whisper_vad_" + name)
        f.restype, f.argtypes = result, arguments
    vad = w.whisper_vad_init_from_file_with_params(model.encode(), ContextParams(1, False, 0))
    zeros = np.zeros(512 * len(probs), np.float32)
    w.whisper_vad_detect_speech(vad, zeros.ctypes.data, len(zeros))
    ctypes.memmove(w.whisper_vad_probs(vad), probs.ctypes.data, probs.nbytes)
    for threshold, speech, silence, longest, pad in PARAMS:
        found = w.whisper_vad_segments_from_probs(vad, VadParams(threshold, speech, silence, longest or 3e38, pad, 0.1))
        n = w.whisper_vad_segments_n_segments(found)
        yield (threshold, speech, silence, longest, pad), [(round(w.whisper_vad_segments_get_segment_t0(found, i)), round(w.whisper_vad_segments_get_segment_t1(found, i))) for i in range(n)]


def main():
    onnx_path, library, model = sys.argv[1:]
    found = probabilities(rounded(onnx_path), clip())
    print(len(found))
    print("\n".join(f"{p:.8f}" for p in found))
    for params, segments in ranges(library, model, steps()):
        print(*params, len(segments))
        print("\n".join(f"{a} {b}" for a, b in segments))


main()
