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
jinja) sources="src/template/jinja/*.c src/base/unicode.c src/base/utf8.c src/base/error.c src/base/mem.c" ;;
speech|grammar|schema|calls|tokenizer)
    sources="src/tokenizer/*.c src/grammar/*.c src/grammar/schema/*.c src/toolcall/*.c src/template/*.c src/template/jinja/*.c src/base/*.c
        src/weights/*.c src/weights/*/*.c src/quant/*.c src/op/*.c src/api/error.c"
    [ "$name" != speech ] || sources="$sources src/vad/file.c src/vad/silero.c" ;;
checkpoint) sources="src/weights/torch/*.c src/base/*.c src/quant/*.c src/api/error.c" ;;
audio)
    sources="src/audio/*.c src/base/*.c src/api/error.c"
    mkdir -p fuzz
    # What the decoders lose of a damaged file is theirs.
    printf 'leak:lib%s.so\n' vorbis vorbisenc ogg opus FLAC mpg123 sndfile >fuzz/audio.supp
    export LSAN_OPTIONS="suppressions=$PWD/fuzz/audio.supp:print_suppressions=0" ;;
containers)
    sources="src/audio/au.c src/audio/bytes.c src/audio/chunks.c src/audio/flac.c src/audio/foreign.c src/audio/matroska.c
        src/audio/mpeg.c src/audio/ogg.c src/audio/ogg_pages.c src/audio/parts.c src/audio/spool.c src/audio/track.c src/base/*.c src/api/error.c" ;;
form) sources="src/server/form.c" ;;
http) sources="src/server/headers.c" ;;
server) # the library and src/cli as they were built
    sources="src/server/*.c"
    CPPFLAGS="$CPPFLAGS -Isrc"
    LIBS="libcli.a .libs/libakunu.a $LIBS -lgnutls"
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
