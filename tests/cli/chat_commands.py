"""What a chat does beside answering: the terminal."""
import os

from terminal import ENVIRONMENT, Terminal, check, finish, run


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


finish(wrapping)
