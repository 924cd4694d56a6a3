"""Writes tests/data/speech/quantized.bin: model.bin with its matrices quantized, each in the next of
the types that whisper.cpp's quantize tool writes and that 32 columns allow; kernels, positions and
vectors stay as they are. Run as

    python3 tests/golden/whisper_quantized.py tests/data/speech/model.bin tests/data/speech/quantized.bin

with gguf. With a type at the end (Q5_0), all matrices get that type, as by the tool."""
import struct
import sys

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import quants

TYPES = [Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0]
FTYPES = {Type.Q4_0: 2, Type.Q4_1: 3, Type.Q8_0: 7, Type.Q5_0: 8, Type.Q5_1: 9}
QUANTIZATION_VERSION = 2


def header_bytes(data):
    n_mels, n_bins = struct.unpack_from("<2i", data, 48)
    at = 56 + 4 * n_mels * n_bins
    (n,) = struct.unpack_from("<i", data, at)
    at += 4
    for _ in range(n):
        at += 4 + struct.unpack_from("<I", data, at)[0]
    return at


def main():
    source, target = sys.argv[1:3]
    types = [Type[sys.argv[3]]] if len(sys.argv) > 3 else TYPES
    data = open(source, "rb").read()
    at = header_bytes(data)
    out = bytearray(data[:at])
    struct.pack_into("<i", out, 44, 1000 * QUANTIZATION_VERSION + FTYPES[types[0] if len(types) == 1 else Type.Q5_0])
    n_quantized = 0
    while at < len(data):
        n_dims, n_name, kind = struct.unpack_from("<3i", data, at)
        dims = struct.unpack_from(f"<{n_dims}i", data, at + 12)
        at += 12 + 4 * n_dims
        name = data[at : at + n_name]
        at += n_name
        values = np.frombuffer(data, {0: "<f4", 1: "<f2"}[kind], int(np.prod(dims)), at)
        at += values.nbytes
        if n_dims == 2 and name.endswith(b"weight"):
            kind = types[n_quantized % len(types)]
            n_quantized += 1
            values = quants.quantize(values.astype(np.float32).reshape(dims[::-1]), kind)
        out += struct.pack("<3i", n_dims, n_name, int(kind)) + struct.pack(f"<{n_dims}i", *dims) + name + values.tobytes()
    open(target, "wb").write(out)


main()
