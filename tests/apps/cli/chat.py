"""Chats with akunu-cli as a person at a terminal does, and as scripts do.

What the tiny model says is not language, so what is looked at is everything around it;
with the fetched model an answer is read as well.
"""
import json
import os
import re
import subprocess

from terminal import CLI, EDITED, ENVIRONMENT, REAL, SPEED, Terminal, WORK, check, finish, run


def commands():
    talk = os.path.join(WORK, "talk.json")
    t = Terminal()
    t.expect(rb"model\.gguf, \d+ tokens of context", "a greeting")
    t.prompt()
    first = t.type_line(b"abc\r", SPEED, "an answer's speed")
    check("the speed is dim", b"\x1b[2m" in first, first)
    check("a first turn keeps nothing", b"(0 kept)" in first, first)
    t.prompt()
    again = t.type_line(b"more\r", SPEED, "a second answer")
    check("a second turn keeps the first", not b"(0 kept)" in again and b" kept)" in again, again)
    t.prompt()
    t.type_line(b"/save " + talk.encode() + b"\r", rb"saved 4 messages", "/save")
    with open(talk) as file:
        messages = json.load(file)
    check("the conversation is saved", [m["role"] for m in messages] == ["user", "assistant"] * 2 and messages[0]["content"] == "abc")
    t.prompt()
    t.type_line(b"/undo\r", rb"removed the last exchange", "/undo")
    t.prompt()
    t.type_line(b"/regen\r", SPEED, "/regen")
    t.prompt()
    t.type_line(b"/system Be brief.\r", rb"system prompt is set", "/system TEXT")
    t.prompt()
    t.type_line(b"/system\r", rb"Be brief\.", "/system")
    t.prompt()
    t.type_line(b"/clear\r", rb"with the same system prompt", "/clear")
    t.prompt()
    t.type_line(b"/regen\r", rb"nothing to answer", "/regen without a message")
    t.prompt()
    t.type_line(b"/load " + talk.encode() + b"\r", rb"4 messages from", "/load")
    t.prompt()
    t.type_line(b"/load /nonexistent\r", rb"cannot read /nonexistent", "/load of nothing")
    t.prompt()
    t.type_line(b"/save\r", rb"/save needs a file", "/save without a name")
    t.prompt()
    t.type_line(b"/stats\r", rb"memory    weights \d+ MB, KV cache \d+ MB, scratch \d+ MB", "/stats")
    t.prompt()
    t.type_line(b"/hepl\r", rb"did you mean /help\?", "a command that is none")
    t.prompt()
    shown = t.type_line(b"/help\r", rb"(?s)/help .*/exit .*Ctrl-C", "/help")
    check("/help has every command", all(b"/" + name in shown for name in (b"clear", b"undo", b"regen", b"system", b"read", b"save", b"load", b"model", b"set", b"show", b"stats")), shown)
    t.prompt()
    os.write(t.fd, b"/exit\r")
    t.ends(0, "/exit")


def typing():
    saved = os.path.join(WORK, "typed.json")
    t = Terminal()
    t.prompt()
    t.type_line(b"one\\\r", rb"\.\.\.(\x1b\[0m)? ", "a line that goes on")
    t.type_line(b"two\r", SPEED, "its answer")
    t.prompt()
    t.type_line(b'"""three\r', rb"\.\.\.(\x1b\[0m)? ", "a block")
    t.type_line(b"\r", rb"\.\.\.(\x1b\[0m)? ", "an empty line of it")
    t.type_line(b'four"""\r', SPEED, "its answer")
    t.prompt()
    if EDITED:
        t.type_line(b"pas\rted\rli", rb"ted\r\n", "pasted lines")
        t.type_line(b"nes\r", SPEED, "are one message")
        t.prompt()
    t.type_line(b" /usr is a path\r", SPEED, "what begins with a space is not a command")
    t.prompt()
    t.type_line(b"/save " + saved.encode() + b"\r", rb"saved \d+ messages", "/save")
    t.prompt()
    with open(saved) as file:
        said = [m["content"] for m in json.load(file) if m["role"] == "user"]
    check("messages of several lines", said == ["one\ntwo", "three\n\nfour"] + ["pas\nted\nli" + "nes"] * EDITED + [" /usr is a path"], repr(said).encode())
    t.leave("Ctrl-D leaves")


def interrupts():
    t = Terminal("-n", "-1", "--ignore-eos", "-c", "4096")
    t.prompt()
    t.type_line(b"abc\r", rb"abc[^\r]*\r\n.*.{8}", "an answer begins")
    t.type_line(b"\x03", rb"stopped", "Ctrl-C stops it")
    t.prompt()
    os.write(t.fd, b"\x03")
    t.expect(rb"Ctrl-C again", "Ctrl-C at the prompt")
    t.prompt()
    os.write(t.fd, b"\x03")
    t.ends(130, "a second Ctrl-C leaves")


def colors():
    t = Terminal()
    t.prompt()
    t.type_line(b"abc\r", SPEED, "an answer with colors")
    check("color ends before what is typed", not EDITED or re.search(rb"\x1b\[1m>\x1b\[0m +abc\r\n", t.shown) is not None, t.shown)
    t.prompt()
    t.leave("Ctrl-D")
    t = Terminal(environment=dict(ENVIRONMENT, NO_COLOR="1"))
    t.prompt()
    t.type_line(b"abc\r", SPEED, "an answer without colors")
    check("no colors where they are not wanted", b"\x1b[2m" not in t.shown and b"\x1b[1m" not in t.shown, t.shown)
    t.prompt()
    t.leave("Ctrl-D")
    t = Terminal(environment=dict(ENVIRONMENT, TERM="dumb"))
    t.prompt()
    t.type_line(b"abc\n", SPEED, "an answer on a dumb terminal")
    check("no escape sequences on a dumb terminal", b"\x1b" not in t.shown, t.shown)
    os.write(t.fd, b"/exit\n")
    t.ends(0, "/exit")


def reasoning():
    grammar = 'root ::= "<think>a\\nb</think>" "\\nyes"'
    t = Terminal("-n", "-1", "--grammar", grammar)
    t.prompt()
    shown = t.type_line(b"abc\r", SPEED, "an answer with reasoning")
    check("reasoning is dimmed", b"\x1b[2ma\r\nb\r\n\x1b[0m\r\nyes\r\n" in shown, shown)
    os.write(t.fd, b"/exit\r")
    t.ends(0, "/exit")
    t = Terminal("-n", "-1", "--grammar", grammar, environment=dict(ENVIRONMENT, NO_COLOR="1"))
    t.prompt()
    shown = t.type_line(b"abc\r", SPEED, "the same without colors")
    check("reasoning is named", b"[reasoning]\r\na\r\nb\r\n[answer]\r\nyes\r\n" in shown, shown)
    os.write(t.fd, b"/exit\r")
    t.ends(0, "/exit")
    saved = os.path.join(WORK, "reasoned.json")
    r = run(b"abc\n/save " + saved.encode() + b"\n", "-cnv", "-n", "-1", "--grammar", grammar)
    check("a program gets the answer alone", r.stdout == b"yes\n" and b"a\nb\n" in r.stderr, r.stdout + r.stderr)
    with open(saved) as file:
        last = json.load(file)[-1]
    check("what was thought is kept apart", last == {"role": "assistant", "content": "yes", "reasoning_content": "a\nb"}, repr(last).encode())


def full():
    t = Terminal("-c", "64", "-n", "200", "--ignore-eos")
    t.prompt()
    t.type_line(b"abc\r", rb"the context is full \(64 tokens\), so the answer is cut off: /undo", "a full context")
    t.prompt()
    t.type_line(b"more\r", rb"the message was not sent: .* context holds 64\. /undo", "a message that does not fit")
    t.prompt()
    os.write(t.fd, b"/exit\r")
    t.ends(0, "/exit")


def piped():
    r = run(b"abc\n/exit\nnever\n", "-cnv")
    check("a script of two lines", r.returncode == 0 and r.stdout.endswith(b"\n") and len(r.stdout) > 1, r.stderr)
    check("its speed is on standard error", len(re.findall(SPEED, r.stderr)) == 1 and b"tok/s" not in r.stdout, r.stderr)
    check("no prompt where nobody types", b"> " not in r.stdout + r.stderr and b"\x1b" not in r.stdout + r.stderr, r.stderr)
    same = run(b"", "-cnv", "-p", "abc")
    check("-p is the first message", same.stdout == r.stdout, same.stdout)
    check("no message, no answer", run(b"", "-cnv").returncode == 0)
    r = run(b"a" * 2000 + b"\n", "-cnv", "-c", "64")
    check("a message that does not fit is a failure", r.returncode == 1 and b"context holds 64" in r.stderr, r.stderr)
    check("nothing is dropped silently", r.stdout == b"", r.stdout)
    r = run(b"a\0b\xff\n", "-cnv")
    check("NUL and what is not UTF-8", r.returncode == 0, r.stderr)
    r = run(b"/nonsense\nabc\n", "-cnv")
    check("a command that is none ends a script", r.returncode == 2 and b"there is no /nonsense" in r.stderr, r.stderr)
    r = run(b"abc", "-cnv", "-no-cnv")
    check("both flags", r.returncode == 2, r.stderr)
    r = run(b"abc", "-cnv", "--json")
    check("-cnv --json", r.returncode == 2, r.stderr)
    r = run(b"abc\n", "-cnv", "--chat-template", "nonsense")
    check("a template that is none", r.returncode == 2 and b"chatml, gemma" in r.stderr, r.stderr)
    r = run(b"abc\n", "-cnv", "--chat-template", "{{ messages[0].content }}")
    check("a template that is given", r.returncode == 0, r.stderr)
    r = run(b"abc\n", "-cnv", "--chat-template", "{{ nonsense(")
    check("a template that is damaged", r.returncode != 0 and r.stderr, r.stderr)
    r = run(b"abc\n", "-cnv", "--chat-template", "{{ raise_exception('no such talk') }}")
    check("a template that refuses", r.returncode != 0 and b"no such talk" in r.stderr, r.stderr)
    r = run(b"abc\n", "-cnv", "--chat-template-file", "/nonexistent")
    check("a template's file that is none", r.returncode == 2 and b"/nonexistent" in r.stderr, r.stderr)
    for name in "chatml", "gemma", "llama3", "phi3", "zephyr":
        r = run(b"abc\ndef\n", "-cnv", "--chat-template", name, "-sys", "Be brief.")
        check("--chat-template " + name, r.returncode == 0, r.stderr)
    null_content()
    again_with_a_seed()


def again_with_a_seed():
    """/regen gives another answer, and a chat that is repeated has the same ones."""
    script = b"abc\n/regen\n/regen\n"
    flags = "-cnv", "--chat-template", "chatml", "-n", "40", "--temp", "1.5"
    one, same, other = (run(script, *flags, "-s", seed) for seed in ("5", "5", "6"))
    answers = re.split(rb"\n+", one.stdout.strip())
    check("/regen answers anew", one.returncode == 0 and len(answers) == len(set(answers)) == 3, one.stdout)
    check("a chat with a seed is the same again", one.stdout == same.stdout, same.stdout)
    check("and another with another seed", one.stdout != other.stdout, other.stdout)


def null_content():
    """A message beside tool calls, as OpenAI's clients save it."""
    talk = os.path.join(WORK, "null.json")
    messages = [{"role": "system", "content": None}, {"role": "assistant", "content": None, "tool_calls": None}, {"role": "user", "content": "a"}]
    with open(talk, "w") as file:
        json.dump(messages, file)
    script = b"/load " + talk.encode() + b"\n/regen\n"
    r = run(script, "-cnv", "--chat-template", "{{ raise_exception(messages[1]|tojson) }}")
    check("/load keeps null content", b'{"role": "assistant", "content": null}' in r.stderr, r.stderr)
    for name in "chatml", "gemma", "llama3", "phi3", "zephyr":
        r = run(script, "-cnv", "--chat-template", name)
        check("null content with --chat-template " + name, r.returncode == 0, r.stderr)


def real():
    if not os.path.exists(REAL):
        print("the model that quickstart fetches is not here")
        return
    messages = os.path.join(WORK, "messages.json")
    with open(messages, "w") as file:
        json.dump([{"role": "user", "content": "What is the capital of France?"}], file)
    prompt = subprocess.run([CLI, "apply-template", "-m", REAL, "--messages", messages], env=ENVIRONMENT, capture_output=True).stdout
    raw = run(prompt + b"\n", "--raw", "--no-display-prompt", model=REAL)  # the last newline is dropped
    r = run(b"What is the capital of France?\nAnd of Italy?\n", "-cnv", model=REAL)
    check("the first answer is what follows the rendered prompt", len(raw.stdout) > 10 and r.stdout.startswith(raw.stdout), r.stdout + raw.stdout)
    one = run(b"What is the capital of France?\n", model=REAL)
    check("so is the answer to a pipe", one.stdout == raw.stdout + b"\n", one.stdout + raw.stdout)
    check("a second turn keeps the first", r.returncode == 0 and len(re.findall(rb"\(0 kept\)", r.stderr)) == 1, r.stderr)
    check("the model's own template is used", b"ChatML" not in r.stderr, r.stderr)


finish(commands, typing, interrupts, colors, reasoning, full, piped, real)
