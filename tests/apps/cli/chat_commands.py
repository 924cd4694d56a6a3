"""What a chat does beside answering: models, settings, files, history, completion, and the terminal."""
import json
import os
import re
import signal
import subprocess
import termios
import time

from terminal import CLI, EDITED, ENVIRONMENT, HISTORY, MODELS, PATIENCE, SPEED, TINY, Terminal, WORK, check, finish, run


def models():
    """Two models with templates of their own in the models folder, and a damaged one."""
    os.makedirs(MODELS)
    os.symlink(TINY, os.path.join(MODELS, "tiny.gguf"))
    for name, text in ("other", "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"), ("strict", "{{ raise_exception('no such talk') }}"):
        r = subprocess.run([CLI, "convert", "-m", TINY, "--outfile", os.path.join(MODELS, name + ".gguf"), "--override-kv", "tokenizer.chat_template=str:" + text], env=ENVIRONMENT, capture_output=True)
        check("a model with the template " + name, r.returncode == 0, r.stderr)
    with open(os.path.join(MODELS, "broken.gguf"), "wb") as file:
        file.write(b"GGUF and no more")


def another_model():
    t = Terminal("-sys", "Be brief.")
    t.prompt()
    t.type_line(b"abc\r", SPEED, "an answer")
    t.prompt()
    shown = t.type_line(b"/model\r", rb"tiny\.gguf", "/model lists models")
    check("those of the models folder", b"other.gguf" in shown and b"broken.gguf" in shown, shown)
    t.prompt()
    t.type_line(b"/model nothing-like-it\r", rb"no such model.*\r\n.*model\.gguf stays", "/model of none")
    t.prompt()
    t.type_line(b"/model broken\r", rb"broken\.gguf.*\r\n.*model\.gguf stays", "/model of a damaged file")
    t.prompt()
    t.type_line(b"/model strict\r", rb"no such talk.*\r\n.*model\.gguf stays", "/model whose template refuses the conversation")
    t.prompt()
    t.type_line(b"more\r", rb"\([1-9]\d* kept\)", "the old model goes on where it was")
    t.prompt()
    t.type_line(b"/model other\r", rb"other\.gguf, \d+ tokens of context", "/model")
    t.prompt()
    t.type_line(b"/show template\r", rb"\[\{\{ m\.role \}\}\]", "its template")
    t.prompt()
    t.type_line(b"once more\r", rb"\(0 kept\)", "an answer by the other model")
    t.prompt()
    t.type_line(b"/system\r", rb"Be brief\.", "the system prompt is kept")
    t.prompt()
    t.type_line(b"/save ~/models.json\r", rb"saved 7 messages", "so is the conversation")
    t.prompt()
    t.type_line(b"/model ./data/akunu/models/tiny.gguf\r", rb"tiny\.gguf, \d+ tokens", "/model of a path")
    t.prompt()
    os.write(t.fd, b"/exit\r")
    t.ends(0, "/exit")
    r = run(b"abc\n/model broken\nnever\n", "-cnv")
    check("a model that is none ends a script", r.returncode == 3 and b"broken.gguf" in r.stderr, r.stderr)
    r = run(b"/model\n", "-cnv")
    check("a script may list models", r.returncode == 0 and b"other.gguf" in r.stderr, r.stderr)


def settings():
    t = Terminal("-s", "7")
    t.prompt()
    shown = t.type_line(b"/set\r", rb"predict +12\r\n(?s:.*)ignore-eos +off", "/set lists flags of sampling")
    check("with their values", re.search(rb"seed +7\r\n", shown) and re.search(rb"temp +0\.8\r\n", shown) and b"parallel" not in shown, shown)
    t.prompt()
    t.type_line(b"/set temp 0.2\r", rb"temp 0\.2\r?\n|temp 0\.2\x1b", "/set KEY VALUE")
    t.prompt()
    t.type_line(b"/set temp\r", rb"\ntemp 0\.2\r\n", "/set KEY")
    t.prompt()
    t.type_line(b"/set --top-k=3\r", rb"top-k 3", "/set as a flag is written")
    t.prompt()
    t.type_line(b"/set n 4\r", rb"predict 4", "/set by a short name")
    t.prompt()
    t.type_line(b"/set ignore-eos\r", rb"ignore-eos on", "/set of a switch")
    t.prompt()
    t.type_line(b"/set temp warm\r", rb"--temp warm: expected a number from 0 to 1000", "/set with no number")
    t.prompt()
    t.type_line(b"/set top-p 1.5\r", rb"--top-p 1\.5: expected a number from 0 to 1", "/set out of range")
    t.prompt()
    t.type_line(b"/set logit-bias x\r", rb"--logit-bias x: expected a token's id", "/set with no bias")
    t.prompt()
    t.type_line(b"/set samplers nonsense\r", rb"nonsense", "/set with no sampler")
    t.prompt()
    t.type_line(b"/set tmep 1\r", rb"did you mean temp\?", "/set of no flag")
    t.prompt()
    t.type_line(b"/set ctx-size 100\r", rb"--ctx-size cannot change during a chat", "/set of another flag")
    t.prompt()
    t.type_line(b"abc\r", rb"(?s)\n4 tokens,|cut off after 4 tokens", "what is set holds")
    t.prompt()
    t.type_line(b"/set predict 3\r", rb"predict 3", "/set again")
    t.prompt()
    t.type_line(b"abc\r", rb"cut off after 3 tokens", "and its note")
    t.prompt()
    shown = t.type_line(b"/show\r", rb"sampling  .*\r\n", "/show")
    for line in rb"model +.*million parameters", rb"file +.*model\.gguf", rb"template +", rb"context +\d+ of \d+ tokens, 4 messages", rb"sampling +predict 3, seed 7, temp 0\.2, top-k 3, top-p 0\.95, min-p 0\.05, ignore-eos on\r\n":
        check("/show has " + line.decode(), re.search(rb"\n" + line, shown), shown)
    t.prompt()
    t.type_line(b"/show nonsense\r", rb"/show nonsense: expected", "/show of nothing")
    t.prompt()
    os.write(t.fd, b"/exit\r")
    t.ends(0, "/exit")
    zero = run(b"abc\n", "-cnv", "--temp", "0", "-n", "1", "--logit-bias", "188+100")
    check("an answer that ends in a zero byte ends its line", zero.stdout == b"\0\n", zero.stdout)
    same = [run(b"abc\n" + set_seed + b"abc\n", "-cnv", "--temp", "2", "--ignore-eos") for set_seed in (b"/clear\n/set seed 5\n", b"/clear\n/set seed 5\n")]
    check("/set seed fixes what follows", same[0].stdout.split(b"\n")[-2] == same[1].stdout.split(b"\n")[-2], same[0].stdout + same[1].stdout)
    r = run(b"/set temp warm\nabc\n", "-cnv")
    check("a wrong value ends a script", r.returncode == 2 and b"--temp warm" in r.stderr and r.stdout == b"", r.stderr)


def files():
    notes, other, talk = (os.path.join(WORK, name) for name in ("notes.txt", "other.txt", "kept.json"))
    for name, text in (notes, b"a note"), (other, b"another\n"), (os.path.join(WORK, "null.bin"), b"a\0b"), (os.path.join(WORK, "empty"), b""):
        with open(name, "wb") as file:
            file.write(text)
    t = Terminal()
    t.prompt()
    for argument, why in (b"", rb"/read needs a file's name: /read notes\.txt"), (b" nonexistent", rb"cannot read nonexistent: No such file"), (b" data", rb"data is a folder, not a file"), (b" /dev/zero", rb"/dev/zero is a pipe or a device"), (b" null.bin", rb"null\.bin is no text"), (b" empty", rb"empty is empty"):
        t.type_line(b"/read" + argument + b"\r", why, "/read" + argument.decode())
        t.prompt()
    for name in b"save", b"load":
        t.type_line(b"/" + name + b"\r", b"/%s needs a file's name: /%s talk\\.json" % (name, name), "/%s of no file" % name.decode())
        t.prompt()
    t.type_line(b"/read ~/notes.txt\r", rb"notes\.txt goes with the next message: 6 bytes, \d+ tokens", "/read")
    t.prompt()
    t.type_line(b"/read other.txt \r", rb"other\.txt goes with the next message", "/read of a second file")
    t.prompt()
    t.type_line(b"What is it?\r", SPEED, "the message")
    t.prompt()
    t.type_line(b"And now?\r", SPEED, "the next message")
    t.prompt()
    t.type_line(b"/save notes.txt\r", rb"notes\.txt is there and holds no conversation, so it is not replaced", "/save over another file")
    t.prompt()
    t.type_line(b"/save data\r", rb"data is a folder, not a file", "/save over a folder")
    t.prompt()
    t.type_line(b"/save nowhere/kept.json\r", rb"cannot write nowhere/kept\.json: No such file", "/save nowhere")
    t.prompt()
    t.type_line(b"/save kept.json\r", rb"saved 4 messages", "/save")
    t.prompt()
    os.chmod(talk, 0o640)
    t.type_line(b"/save kept.json\r", rb"saved 4 messages", "/save over a conversation")
    t.prompt()
    t.type_line(b"/load notes.txt\r", rb"notes\.txt:1: no valid JSON", "/load of a text")
    t.prompt()
    t.type_line(b"/read other.txt\r", rb"other\.txt goes with the next message", "/read before /clear")
    t.prompt()
    t.type_line(b"/clear\r", rb"a new conversation", "/clear")
    t.prompt()
    t.type_line(b"Alone?\r", SPEED, "a message after /clear")
    t.prompt()
    t.type_line(b"/save cleared.json\r", rb"saved 2 messages", "/save after /clear")
    t.prompt()
    t.type_line(b"/load kept.json\r", rb"4 messages from kept\.json", "/load")
    t.prompt()
    os.write(t.fd, b"/exit\r")
    t.ends(0, "/exit")
    with open(notes, "rb") as file:
        check("the other file is as it was", file.read() == b"a note")
    with open(talk) as file:
        said = [m["content"] for m in json.load(file) if m["role"] == "user"]
    check("what is read goes with one message", said == ["a note\n\nanother\n\nWhat is it?", "And now?"], repr(said).encode())
    with open(os.path.join(WORK, "cleared.json")) as file:
        check("what is read before /clear goes with it", json.load(file)[0]["content"] == "Alone?")
    check("a file that is replaced keeps its mode", os.stat(talk).st_mode & 0o777 == 0o640)
    check("nothing else is left", not [name for name in os.listdir(WORK) if name.startswith("kept.json.")])
    r = subprocess.run([CLI, "apply-template", "-m", TINY, "--messages", talk], env=ENVIRONMENT, capture_output=True)
    check("apply-template reads what is saved", r.returncode == 0 and b"What is it?" in r.stdout, r.stderr)


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


def typed(begin, rest):
    """What is typed and what Tab adds to it, before which libedit may set the column."""
    return (begin + r"(\r\x1b\[\d+G)?" + rest).encode()


def completion():
    if not EDITED:
        return
    os.makedirs(os.path.join(WORK, "files", "folder with spaces"))
    for name in "talk-one.json", "talk-two.json", ".hidden":
        open(os.path.join(WORK, "files", name), "w").close()
    t = Terminal("-n", "1")
    t.prompt()
    t.type_line(b"/sta\t", typed("/sta", "ts"), "Tab completes a command")
    t.type_line(b"\r", rb"KV cache", "and Enter runs it")
    t.prompt()
    t.type_line(b"/re\t", rb"regen +read", "Tab lists what there is")
    t.type_line(b"a\tfiles/t\t", typed("files/t", "alk-"), "Tab completes what files have in common")
    t.type_line(b"\t", rb"files/talk-one\.json  files/talk-two\.json", "and lists them")
    os.write(t.fd, b"\x15")
    t.type_line(b"/load files/f\t", typed("f", "older with spaces/"), "Tab completes a folder")
    os.write(t.fd, b"\x15")
    t.type_line(b"/load ~/files/talk-o\t", typed("talk-o", r"ne\.json"), "Tab knows the home folder")
    os.write(t.fd, b"\x15")
    t.type_line(b"/model str\t", typed("str", r"ict\.gguf"), "Tab completes a model")
    os.write(t.fd, b"\x15")
    t.type_line(b"/set tem\t0.3\r", rb"temp 0\.3", "Tab completes a key")
    t.prompt()
    t.type_line(b"/set top-\t", rb"top-k +top-p +top-nsigma", "Tab lists keys")
    os.write(t.fd, b"\x15")
    t.type_line(b"a\tb\r", SPEED, "Tab is a tab in a message")
    t.prompt()
    t.type_line(b"/save tab.json\r", rb"saved 2 messages", "/save")
    t.prompt()
    os.write(t.fd, b"/exit\r")
    t.ends(0, "/exit")
    with open(os.path.join(WORK, "tab.json")) as file:
        check("which is kept", json.load(file)[0]["content"] == "a\tb")


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


def resized_while_drawing():
    """New sizes come while libedit draws, which then reads rows that it has freed."""
    t = Terminal("--grammar", 'root ::= "ok"', columns=80)
    t.prompt()
    for i in range(1500):
        t.resize(20 if i % 2 else 80)
        try:
            if i % 20 == 0:
                os.write(t.fd, b"abc\r")
            if not t.read(0.001):
                break
        except OSError:
            break
    t.leave("many sizes while it draws")
    check("nothing but what was written appears", t.shown.isascii(), t.shown)


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
        t.prompt()
        slave = os.open(os.readlink("/proc/%d/fd/0" % t.pid), os.O_RDWR | os.O_NOCTTY)
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


finish(history, models, another_model, settings, files, completion, wrapping, resized_while_drawing, typed_ahead, terminal_restored, first_message)
