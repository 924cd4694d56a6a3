"""akunu-cli as a person at a terminal meets it, for chat.py and chat_commands.py.

$AK_CLI, $AK_TEST_DATA, $AK_TEST_MODELS: as in test_cli.sh.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

CLI = os.environ["AK_CLI"]
TINY = os.path.join(os.environ["AK_TEST_DATA"], "model.gguf")
REAL = os.path.join(os.environ.get("AK_TEST_MODELS", ""), "SmolLM2-135M-Instruct.Q4_1.gguf")
WORK = tempfile.mkdtemp()
EDITED = "AK_EDITED" in os.environ  # the build has libedit
# How long anything may take, on a machine that does much else: what is waited for ends the wait.
PATIENCE = 60 * float(os.environ.get("CK_TIMEOUT_MULTIPLIER") or 1)
SPEED = rb"\d+ tokens?, [\d.]+ tok/s; prompt \d+ \(\d+ kept\), [\d.]+ tok/s; context \d+ of \d+"
MODELS = os.path.join(WORK, "data", "akunu", "models")
HISTORY = os.path.join(WORK, "state", "akunu", "history")
ENVIRONMENT = dict(os.environ, TERM="xterm", XDG_CONFIG_HOME=WORK, XDG_DATA_HOME=os.path.join(WORK, "data"),
                   XDG_STATE_HOME=os.path.join(WORK, "state"), HOME=WORK)
ENVIRONMENT.pop("NO_COLOR", None)

checks = failures = 0


def check(what, good, shown=b""):
    global checks, failures
    checks += 1
    if not good:
        failures += 1
        print("FAIL %s\n    %r" % (what, shown[-600:]))


class Terminal:
    """The program in a pseudo-terminal; without columns its size is not known."""

    def __init__(self, *arguments, model=TINY, environment=ENVIRONMENT, columns=0):
        self.shown, self.seen = b"", 0
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            for ignored in signal.SIGHUP, signal.SIGINT:  # as nohup and background jobs have it
                signal.signal(ignored, signal.SIG_DFL)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("4H", 24 if columns else 0, columns, 0, 0))
            os.chdir(WORK)
            os.execve(CLI, [CLI, "run", "-m", model, "-n", "12", "-s", "1", *arguments], environment)

    def read(self, seconds):
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            more = os.read(self.fd, 65536)
        except OSError:  # what Linux says where the program has gone
            return False
        self.shown += more
        return bool(more)

    def expect(self, pattern, what):
        """Waits for a pattern in what was not looked at yet; gives what was shown up to it."""
        end = time.monotonic() + PATIENCE
        while True:
            found = re.search(pattern, self.shown[self.seen:])
            if found or time.monotonic() > end:
                break
            if not self.read(0.05):
                found = re.search(pattern, self.shown[self.seen:])
                break
        check(what, found, self.shown[self.seen:])
        shown = self.shown[self.seen:self.seen + found.end()] if found else b""
        self.seen += len(shown)
        return shown

    def prompt(self):
        return self.expect(rb"\r\n[^\r\n]*>(\x1b\[[0-9;]*m)? (\x1b\[[0-9;]*m)?", "a prompt")

    def resize(self, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))

    def echoes(self):
        return bool(termios.tcgetattr(self.fd)[3] & termios.ECHO)

    def type_line(self, text, pattern, what):
        os.write(self.fd, text)
        return self.expect(pattern, what)

    def leave(self, what):
        """Ctrl-D, typed again where it came before the terminal listened for single keys."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                os.write(self.fd, b"\x04")
            except OSError:
                break
            if not self.read(0.5):
                break
        self.ends(0, what)

    def ends(self, code, what):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.read(0.05):
            pass
        pid, status = 0, 0
        while pid == 0 and time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            time.sleep(0.01)
        check(what, pid and os.waitstatus_to_exitcode(status) == code, self.shown)
        os.close(self.fd)


def run(text, *arguments, model=TINY):
    return subprocess.run([CLI, "run", "-m", model, "-n", "8", "--temp", "0", *arguments], input=text, env=ENVIRONMENT, cwd=WORK, capture_output=True)


def finish(*parts):
    """Runs the tests and ends the program."""
    for part in parts:
        part()
    print("%d of %d checks passed" % (checks - failures, checks))
    sys.exit(failures != 0)
