#!/bin/sh
# Each check of tests/house.sh finds what it looks for: a copy of the source is broken in one
# place at a time. usage: tests/test_house.sh [SOURCE-ROOT]
set -u
root=$(cd "${1:-${AK_TEST_SOURCE:-$(dirname "$0")/..}}" && pwd)
copy=$(mktemp -d) || exit 99
trap 'chmod -R u+w "$copy"; rm -rf "$copy"' EXIT
trap 'exit 99' HUP INT TERM

# One header, one source and a list of each kind are enough.
mkdir -p "$copy/tests" "$copy/src/base" "$copy/src/files/quant" "$copy/src/engine/cpu/avx2" "$copy/include/akunu" "$copy/opencl" "$copy/docs"
cd "$copy" || exit 99
for folder in man data bench examples m4 python; do
    mkdir "$folder"
done
cp "$root/tests/house.sh" tests
chmod u+w tests/*
: >tests/house.exceptions
: >README.md
: >python/README.md
: >src/README.md
: >src/TERMS.md
cat >src/layers.txt <<'END'
base < files < engine
base < files/quant < engine/cpu
END
cat >src/base/buffer.h <<'END'
/* A buffer. */
struct ak_buffer {
    char *bytes;
};
void ak_buffer_add(struct ak_buffer *b);
END
cat >src/files/quant/type.c <<'END'
/* Types. */
#include "base/buffer.h"
int ak_quant_count(void);
int ak_quant_count(void)
{
    return 1;
}
END
cat >src/base/error.c <<'END'
/* Errors. */
int ak_fail(void);
int ak_fail(void)
{
    return 0;
}
END
echo 'libak_avx2_la_SOURCES = src/engine/cpu/avx2/dot.c' >src/engine/cpu/avx2/local.mk
echo 'AK_ISA([avx2], [x86_64], [-mavx2], [[]])' >configure.ac
echo 'include src/engine/cpu/avx2/local.mk' >src/engine/cpu/local.mk
printf '/* Bundles. */\nISA(SCALAR, scalar, SCALAR, true)\nISA(AVX2, avx2, SCALAR, true)\n' >src/engine/cpu/isa.def
: >Makefile.am

n_bad=0
# usage: finds CHECK NAME: this is found in what was broken.
finds() {
    sh tests/house.sh . >found
    if [ $? -eq 0 ] || ! grep -q "^$1 $2:" found; then
        echo "test_house: broken by '$1 $2', and tests/house.sh said:"
        cat found
        n_bad=$((n_bad + 1))
    fi
}
# Puts everything back.
mend() {
    rm -rf src docs tests
    cp -R whole/* .
}

sh tests/house.sh . || { echo "test_house: it finds something in what is whole"; n_bad=1; }
mkdir whole
cp -R src docs tests README.md whole

printf '/* One. */\nstruct ak_buffer {\n    int n;\n};\n' >src/files/quant/rows.h
finds tag ak_buffer
mend
printf '/* One. */\nstruct ak_rows {\n    int n;\n};\n' >src/files/quant/rows.c
printf '/* Two. */\nenum ak_rows {\n    ONE\n};\n' >src/base/rows.c
finds tag ak_rows
mend
printf '/* A type. */\n' >src/files/quant/type.h
sed -i '1a #include "files/quant/type.h"' src/base/error.c
finds include src/base/error.c
mend
sed -i '1a #include "base/nothing.h"' src/base/error.c
finds include src/base/error.c
mend
echo 'int is_amd(void) { return __builtin_cpu_is("amd"); }' >src/engine/cpu/avx2/dot.c
finds vendor src/engine/cpu/avx2/dot.c
rm src/engine/cpu/avx2/dot.c
mend
mkdir src/engine/cpu/sse
printf '/* Lanes. */\n' >src/engine/cpu/avx2/lanes.h
printf '/* Another bundle. */\n#include "engine/cpu/avx2/lanes.h"\n' >src/engine/cpu/sse/attn.c
finds include src/engine/cpu/sse/attn.c
mend
printf '/* Wings. */\n#include "engine/cpu/lanes.h"\n' >src/files/quant/wing.c
printf '/* Lanes. */\n' >src/engine/cpu/lanes.h
echo 'engine/cpu < files/quant' >>src/layers.txt
finds include src/files/quant/wing.c
mend
mkdir src/other
printf '/* A folder that the order lacks. */\n#include "base/buffer.h"\n' >src/other/one.c
finds include src/other/one.c
mend
mkdir src/files/quant/float src/files/quant/legacy
printf '/* Floats. */\n#include "files/quant/legacy/legacy.h"\n' >src/files/quant/float/float.h
printf '/* Blocks of 32. */\n#include "files/quant/float/float.h"\n' >src/files/quant/legacy/legacy.h
finds cycle src/files/quant/float
mend
echo 'See `docs/nothing.md`.' >README.md
finds path README.md
mend
sed -i 1d src/base/error.c
finds comment src/base/error.c
mend
sed -i "1s,.*,/* $(printf '%098d' 0) */," src/base/error.c
finds column src/base/error.c
mend
if command -v python3 >/dev/null; then
    cp "$root/docs/architecture.py" docs
    : >docs/architecture.svg
    finds drawing docs/architecture.svg
fi
mend
mkdir src/engine/cpu/sse
echo 'libak_sse_la_SOURCES = src/engine/cpu/sse/dot.c' >src/engine/cpu/sse/local.mk
finds isa sse
mend
echo 'comment src/base/error.c' >tests/house.exceptions
finds comment src/base/error.c
mend

# What is called without an include.
if command -v nm >/dev/null && command -v "${CC:-cc}" >/dev/null; then
    printf '/* Errors. */\nint ak_quant_count(void);\nint ak_fail(void);\nint ak_fail(void)\n{\n    return ak_quant_count();\n}\n' >src/base/error.c
    "${CC:-cc}" -Isrc -c src/base/error.c -o src/base/error.o && "${CC:-cc}" -Isrc -c src/files/quant/type.c -o src/files/quant/type.o
    finds symbol ak_quant_count
fi
exit $((n_bad > 0))
