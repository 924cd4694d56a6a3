#!/bin/sh
# Writes tests/data/speech/whisper_cpp_full.json: what whisper.cpp's whisper-cli writes with
# --output-json-full. Run as
#
#     sh tests/golden/whisper_cpp.sh WHISPER_CLI MODELS CLIP tests/data/speech
#
# MODELS has ggml-tiny.en.bin. The file there is of whisper.cpp 233fe1fc9 and a clip of 3 s.
set -eu
folder=$(cd "$4" && pwd) clip=$(realpath "$3") program=$(realpath "$1")
cd "$2"
"$program" -t 1 -m ggml-tiny.en.bin -f "$clip" --output-json-full --output-file "$folder/whisper_cpp_full" >/dev/null 2>&1
