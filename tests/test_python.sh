#!/bin/sh
# The Python package in python/: its unit tests, with the shared library of this build.
# AKUNU_REQUIRE_TOOLS=1: without python3 it fails.
set -u
source=${AK_TEST_SOURCE:?} build=${AK_TEST_BUILD:-$PWD}
skip() {
    echo "SKIPPED: python, $*"
    exit 77
}
PYTHON=${PYTHON:-python3}
"$PYTHON" -c 'import ctypes, sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || {
    [ "${AKUNU_REQUIRE_TOOLS:-}" != 1 ] || { echo "FAIL: no python3 of 3.9 or newer, which AKUNU_REQUIRE_TOOLS=1 requires"; exit 1; }
    skip "no python3 of 3.9 or newer"
}
[ -z "${AK_EMULATED:-}" ] || skip "no foreign library under an emulator"
AKUNU_LIBRARY=
for file in "$build/.libs/libakunu.so.0" "$build/.libs/libakunu.0.dylib"; do
    [ ! -e "$file" ] || AKUNU_LIBRARY=$file
done
[ -n "$AKUNU_LIBRARY" ] || skip "this build has no shared library"
# A sanitizer's library must be loaded before all others.
case $(nm -D "$AKUNU_LIBRARY" 2>/dev/null) in
*__asan_init* | *__tsan_init*) skip "a sanitizer watches the library" ;;
esac
export AKUNU_LIBRARY PYTHONPATH="$source/python" PYTHONDONTWRITEBYTECODE=1
cd "$source/python" || exit 99
# Types, if there is a program that checks them, and NumPy, whose types it needs.
! "$PYTHON" -c 'import mypy, numpy' 2>/dev/null || "$PYTHON" -m mypy --cache-dir=/dev/null || exit 1
cd tests || exit 99
exec "$PYTHON" -W error::ResourceWarning -m unittest discover ${AK_TEST_VERBOSE:+-v} -p 'test_*.py'
