#!/bin/sh
# Downloads from a server of our own, with its faults: tests/apps/cli/pull.py. Without libcurl a message
# says what to install.
. "${AK_TEST_SOURCE:?}/tests/apps/cli/checks.sh"
if [ -z "${AK_DOWNLOADS:-}" ]; then
    exits 1 pull user/repo
    says "libcurl4-gnutls-dev"
    exits 1 run -hf user/repo -p x
    says "libcurl4-gnutls-dev"
    finish pull
    exit
fi
python3 -c 'import http.server' 2>/dev/null || {
    [ "${AKUNU_REQUIRE_TOOLS:-}" != 1 ] || { echo "FAIL: no python3, which AKUNU_REQUIRE_TOOLS=1 requires"; exit 1; }
    echo "SKIPPED: downloads, no python3"
    exit 77
}
# Signals and time limits are those of the emulator.
[ -z "${AK_EMULATED:-}" ] || { echo "SKIPPED: no downloads under an emulator"; exit 77; }
exec python3 -B "$AK_TEST_SOURCE/tests/apps/cli/pull.py"
