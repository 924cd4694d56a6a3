"""What a chat does beside answering: history, and the terminal."""
import os
import re
import signal
import termios
import time

from terminal import EDITED, ENVIRONMENT, HISTORY, PATIENCE, SPEED, Terminal, WORK, check, finish, run


def history():
    t = Terminal("-n", "1")
    t.prompt()
    t.type_line(b"first words\r", SPEED, "an answer")
    check("the new file is named once", t.shown.count(b"what you type is kept in " + HISTORY.encode()) == EDITED, t.shown)
    t.prompt()
    t.type_line(b" a secret\\\r", rb"\.\.\.(\x1b\[0m)? ", "a line that begins with a space")
    t.type_line(b"goes on\r", SPEED, "and goes on")
    t.prompt()
    os.write(t.fd, b"/exit\r")
    t.ends(0, "/exit")
    run(b"piped words\n", "-cnv")
    for arguments, environment in (["--no-history"], {}), ([], {"AKUNU_NO_HISTORY": "1"}):
        t = Terminal("-n", "1", *arguments, environment=dict(ENVIRONMENT, **environment))
        t.prompt()
        t.type_line(b"unkept words\r", SPEED, "an answer without a history")
        t.prompt()
        os.write(t.fd, b"/exit\r")
        t.ends(0, "/exit")
    if not EDITED:
        check("without libedit there is no history", not os.path.exists(HISTORY))
        return
    with open(HISTORY) as file:
        lines = file.read().split("\n")
    check("the history file", lines == ["first words", "/exit", ""], repr(lines).encode())
    check("it is its owner's", os.stat(HISTORY).st_mode & 0o777 == 0o600)
    t = Terminal("-n", "1")
    t.prompt()
    os.write(t.fd, b"\x10\x10")  # Ctrl-P: the line before
    t.expect(rb"first words", "the next start recalls it")
    t.type_line(b"\r", SPEED, "and sends it")
    t.prompt()
    os.write(t.fd, b"/exit\r")
    t.ends(0, "/exit")
    check("the file is named only when it is new", b"what you type is kept" not in t.shown, t.shown)
    t = Terminal("-n", "1", environment=dict(ENVIRONMENT, XDG_STATE_HOME="/dev/null"))
    t.prompt()
    t.type_line(b"abc\r", rb"what you type is not kept: /dev/null/akunu/history: Not a directory", "a history that cannot be kept")
    t.expect(SPEED, "is no failure")
    t.prompt()
    t.type_line(b"abc\r", SPEED, "another answer")
    check("and is said once", t.shown.count(b"is not kept") == 1, t.shown)
    t.prompt()
    os.write(t.fd, b"/exit\r")
    t.ends(0, "/exit")


def wrapping():
    text = "The quick brown fox jumps over the lazy dog, extraordinarily."
    grammar = 'root ::= "%s"' % text
    expected = {
        20: b"The quick brown fox\r\njumps over the lazy\r\ndog,\r\nextraordinarily.\r\n",
        33: b"The quick brown fox jumps over\r\nthe lazy dog, extraordinarily.\r\n",
        80: text.encode() + b"\r\n",
    }
    whole = b"\r\n" + text.encode() + b"\r\n"
    for columns, lines in expected.items():
        t = Terminal("-n", "-1", "--grammar", grammar, columns=columns)
        t.prompt()
        shown = t.type_line(b"abc\r", rb"prompt \d+", "an answer in %d columns" % columns)
        check("words wrap at %d columns" % columns, b"\r\n" + lines in shown, shown)
        t.resize(80 if columns == 20 else 20)
        t.prompt()
        shown = t.type_line(b"abc\r", rb"prompt \d+", "an answer after a resize")
        check("the terminal's new size counts", b"\r\n" + expected[80 if columns == 20 else 20] in shown, shown)
        t.prompt()
        os.write(t.fd, b"/exit\r")
        t.ends(0, "/exit")
    for flag, environment in (["--no-wrap"], {}), ([], {"AKUNU_NO_WRAP": "1"}):
        t = Terminal("-n", "-1", "--grammar", grammar, *flag, columns=20, environment=dict(ENVIRONMENT, **environment))
        t.prompt()
        shown = t.type_line(b"abc\r", rb"prompt \d+", "an answer with --no-wrap")
        check("no line is broken", whole in shown, shown)
        os.write(t.fd, b"/exit\r")
        t.ends(0, "/exit")
    t = Terminal("-n", "-1", "--grammar", r'root ::= "<think>one two three four five</think>" "```\none two three four five\n```\n  one two three four five\none two three four five"', columns=16)
    t.prompt()
    shown = t.type_line(b"abc\r", rb"prompt \d+", "reasoning, code and indented lines")
    plain = b"one two three four five\r\n"
    wrapped = b"one two three\r\nfour five\r\n"
    check("keep their form", b"\x1b[2m" + wrapped + b"\x1b[0m\r\n```\r\n" + plain + b"```\r\n  " + plain + wrapped in shown, shown)
    os.write(t.fd, b"/exit\r")
    t.ends(0, "/exit")
    r = run(b"abc\n", "-cnv", "-n", "-1", "--grammar", grammar)
    check("a program gets lines as they are", r.stdout == text.encode() + b"\n", r.stdout)


def typed_ahead():
    for environment in {}, {"TERM": "dumb"}:
        enter = b"\n" if environment else b"\r"
        t = Terminal("-n", "1500", "--ignore-eos", "-c", "4096", environment=dict(ENVIRONMENT, **environment))
        t.prompt()
        t.type_line(b"abc" + enter, rb"abc\r\n[^$]{20}", "an answer begins")
        check("typing is not shown then", not t.echoes(), t.shown)
        os.write(t.fd, b"/stats" + enter)
        shown = t.expect(SPEED, "the answer ends")
        check("nothing is shown in the answer", b"/stats" not in shown, shown)
        t.expect(rb">(\x1b\[0m)? +[^\r\n]*/stats\r\n", "what was typed is shown at the prompt")
        t.expect(rb"KV cache", "and is the next input")
        t.prompt()
        os.write(t.fd, b"/exit" + enter)
        t.ends(0, "/exit")


def terminal_restored():
    """However the program ends, what is typed is shown again."""
    for what, keys, code in ("SIGTERM", signal.SIGTERM, -signal.SIGTERM), ("SIGHUP", signal.SIGHUP, -signal.SIGHUP), ("the end", b"/exit\r", 0):
        ends = keys == b"/exit\r"
        t = Terminal("-n", "12" if ends else "-1", "--ignore-eos", "-c", "4096")
        slave = os.open(os.readlink("/proc/%d/fd/0" % t.pid), os.O_RDWR | os.O_NOCTTY)
        t.prompt()
        t.type_line(b"abc\r", SPEED if ends else rb"abc\r\n[^$]{20}", "an answer")
        if isinstance(keys, bytes):
            os.write(t.fd, keys)
        else:
            os.kill(t.pid, keys)
        end = time.monotonic() + PATIENCE
        pid, status = 0, 0
        while pid == 0 and time.monotonic() < end:
            t.read(0.01)
            pid, status = os.waitpid(t.pid, os.WNOHANG)
        check("the exit code after " + what, pid and os.waitstatus_to_exitcode(status) == code, repr(status).encode())
        check("typing is shown after " + what, t.echoes() and termios.tcgetattr(t.fd)[3] & termios.ICANON)
        os.close(slave)
        os.close(t.fd)


def first_message():
    for option in ["-p", "first words\\nsecond line"], ["-f", os.path.join(WORK, "first.txt")]:
        with open(os.path.join(WORK, "first.txt"), "w") as file:
            file.write("first words\nsecond \x1b]0;x\x07line\n")
        t = Terminal("-cnv", "-n", "4", *option)
        shown = t.expect(SPEED, "an answer to " + option[0])
        check("the message is shown", re.search(rb"\r\n(\x1b\[1m)?> (\x1b\[0m)?first words\r\n(\x1b\[1m)?\.\.\. (\x1b\[0m)?second (\]0;x)?line\r\n", shown), shown)
        t.prompt()
        os.write(t.fd, b"/exit\r")
        t.ends(0, "/exit")
    with open(os.path.join(WORK, "first.txt"), "w") as file:
        file.write("a line\n" * 100)
    t = Terminal("-cnv", "-n", "4", "-c", "2048", "-f", os.path.join(WORK, "first.txt"))
    shown = t.expect(SPEED, "an answer to a long file")
    check("of a long one the beginning is shown", shown.count(b"a line\r\n") == 12 and re.search(rb"and \d+ bytes more", shown), shown)
    os.write(t.fd, b"/exit\r")
    t.ends(0, "/exit")
    r = run(b"/exit\n", "-cnv", "-p", "first words")
    check("a program does not get it", b"first words" not in r.stdout + r.stderr, r.stdout + r.stderr)


finish(history, wrapping, typed_ahead, terminal_restored, first_message)
