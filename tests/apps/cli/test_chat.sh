#!/bin/sh
# Conversations in a pseudo-terminal and through pipes: tests/apps/cli/chat.py and chat_commands.py.
# Without a python3 that has pseudo-terminals there is nothing to try them with.
python3 -c 'import pty' 2>/dev/null || {
    [ "${AKUNU_REQUIRE_TOOLS:-}" != 1 ] || { echo "FAIL: no python3, which AKUNU_REQUIRE_TOOLS=1 requires"; exit 1; }
    echo "SKIPPED: chat, no python3"
    exit 77
}
# Under an emulator a read goes on after a signal.
[ -z "${AK_EMULATED:-}" ] || { echo "no signals under an emulator"; exit 77; }
failed=0
for part in chat chat_commands; do
    python3 -B "${AK_TEST_SOURCE:?}/tests/apps/cli/$part.py" || failed=1
done
exit $failed
