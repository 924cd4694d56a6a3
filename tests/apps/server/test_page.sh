#!/bin/sh
# The chat page of akunu-server in headless chromium (page.py). AKUNU_REQUIRE_CHROMIUM=1: without
# it the test fails instead of being skipped.
set -u
server=${AK_TEST_BUILD:?}/akunu-server
[ -x "$server" ] && [ -z "${AK_EMULATED:-}" ] || { echo "SKIPPED: there is no akunu-server"; exit 77; }
command -v python3 >/dev/null || { echo "SKIPPED: the chat page, no python3"; exit 77; }
if [ "${AKUNU_REQUIRE_CHROMIUM:-}" = 1 ] && ! command -v chromium >/dev/null; then
    echo "FAIL: no chromium, which AKUNU_REQUIRE_CHROMIUM=1 requires"
    exit 1
fi
exec python3 "${AK_TEST_SOURCE:?}/tests/apps/server/page.py" "$server" "${AK_TEST_DATA:?}/model.gguf"
