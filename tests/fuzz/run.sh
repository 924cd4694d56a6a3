#!/bin/sh
# Builds a fuzz target with the sources that it reaches, sanitized, and runs it: usage
# run.sh SOURCE-ROOT NAME SECONDS, from a build folder. New inputs go to fuzz/NAME there.
# Seeds: corpus/NAME has up to 30 that a person can read, corpus/NAME.tar.xz the others, of
# which the fuzzer's -merge=1 left what reaches something new. $FUZZ_CC, $CPPFLAGS, $LIBS: as
# `make fuzz` gives them.
set -eu
root=$1 name=$2 seconds=$3
case $name in
# What the target needs of the library, by folder or file.
jinja) sources="src/text/template/jinja/*.c src/base/unicode.c src/base/utf8.c src/base/error.c src/base/mem.c" ;;
speech|grammar|schema|calls|tokenizer)
    sources="src/text/tokenizer/*.c src/text/grammar/*.c src/text/grammar/schema/*.c src/text/toolcall/*.c src/text/template/*.c src/text/template/jinja/*.c src/base/*.c
        src/files/weights/*.c src/files/weights/*/*.c src/files/quant/*.c src/engine/op/*.c src/api/error.c"
    [ "$name" != speech ] || sources="$sources src/speech/vad/file.c src/speech/vad/silero.c" ;;
checkpoint) sources="src/files/weights/torch/*.c src/base/*.c src/files/quant/*.c src/api/error.c" ;;
audio)
    sources="src/speech/audio/*.c src/base/*.c src/api/error.c"
    mkdir -p fuzz
    # What the decoders lose of a damaged file is theirs.
    printf 'leak:lib%s.so\n' vorbis vorbisenc ogg opus FLAC mpg123 sndfile >fuzz/audio.supp
    export LSAN_OPTIONS="suppressions=$PWD/fuzz/audio.supp:print_suppressions=0" ;;
containers)
    sources="src/speech/audio/au.c src/speech/audio/bytes.c src/speech/audio/chunks.c src/speech/audio/flac.c src/speech/audio/foreign.c src/speech/audio/matroska.c
        src/speech/audio/mpeg.c src/speech/audio/ogg.c src/speech/audio/ogg_pages.c src/speech/audio/parts.c src/speech/audio/spool.c src/speech/audio/track.c src/base/*.c src/api/error.c" ;;
form) sources="src/apps/server/form.c" ;;
http) sources="src/apps/server/headers.c" ;;
server) # the library and src/apps/common as they were built
    sources="src/apps/server/*.c"
    CPPFLAGS="$CPPFLAGS -Isrc"
    LIBS="libapp.a .libs/libakunu.a $LIBS -lgnutls"
    export AK_FUZZ_MODEL="$root/tests/data/model.gguf" ;;
*) echo "tests/fuzz/run.sh: no sources are named for $name" >&2; exit 2 ;;
esac
mkdir -p "fuzz/$name" "fuzz/$name-seeds"
[ ! -e "$root/tests/fuzz/corpus/$name.tar.xz" ] || tar -xf "$root/tests/fuzz/corpus/$name.tar.xz" -C "fuzz/$name-seeds"
# The target has a main of its own, and stands for the sockets.
for source in $sources; do printf '%s\n' "$root"/$source; done | grep -vE '/server/(main|http|http_[a-z]*|tls|systemd)\.c$' > "fuzz/$name.sources"
# shellcheck disable=SC2046,SC2086
$FUZZ_CC -std=gnu11 -g -O1 -fno-omit-frame-pointer -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
    $CPPFLAGS -o "fuzz/$name-fuzzer" "$root/tests/fuzz/$name.c" $(cat "fuzz/$name.sources") $LIBS
# A template at the library's limits takes 20 s, sanitized, on a core of its own.
"./fuzz/$name-fuzzer" -max_total_time="$seconds" -timeout=120 -rss_limit_mb=3000 -max_len=4096 -print_final_stats=1 \
    -artifact_prefix="fuzz/$name-" "fuzz/$name" "fuzz/$name-seeds" "$root/tests/fuzz/corpus/$name"
