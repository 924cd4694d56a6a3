#!/bin/sh
# Every command of README.md and docs/: tests/apps/cli/docs.py runs it.
# AKUNU_TEST_DOCS=0: skipped.
[ "${AKUNU_TEST_DOCS:-}" != 0 ] || { echo "SKIPPED: AKUNU_TEST_DOCS=0"; exit 77; }
python3 -c '' 2>/dev/null || {
    [ "${AKUNU_REQUIRE_TOOLS:-}" != 1 ] || { echo "FAIL: no python3, which AKUNU_REQUIRE_TOOLS=1 requires"; exit 1; }
    echo "SKIPPED: commands of the documentation, no python3"
    exit 77
}
# Hundreds of starts under an emulator.
[ -z "${AK_EMULATED:-}" ] || { echo "SKIPPED: too slow under an emulator"; exit 77; }
exec python3 "$AK_TEST_SOURCE/tests/apps/cli/docs.py"
