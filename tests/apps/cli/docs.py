"""Runs every command of README.md and docs/*.md as a reader would.

A block marked `sh` has a command per line. A block marked `console` has commands after "$ ", what
is typed into them after "> " and "... ", and lines that the output must have, in this order:
numbers, spaces and line breaks may differ, and … stands for any text. A command must exit with 0
unless one of these lines is a message. Commands in running text count too. Blocks
marked `json` and `yaml` must be valid, as a value and as a configuration; in one marked `jsonl` each
line is a value. Other blocks are no commands, and say so by their mark.

A tiny model has the names of the models that the pages use. Blocks with the words of the model that
`quickstart` fetches need it ($AK_TEST_MODELS, as in test_cli.sh); AKUNU_TEST_FEW=1: not those.
"""
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import threading

CLI = os.environ["AK_CLI"]
SOURCE = os.environ["AK_TEST_SOURCE"]
DATA = os.environ["AK_TEST_DATA"]
TINY = os.path.join(DATA, "model.gguf")
FETCHED = "SmolLM2-135M-Instruct.Q4_1.gguf"
REAL = os.path.join(os.environ.get("AK_TEST_MODELS", ""), FETCHED)
HAS_REAL = os.path.exists(REAL) and not os.environ.get("AKUNU_TEST_FEW")
PATIENCE = 120 * float(os.environ.get("CK_TIMEOUT_MULTIPLIER") or 1)

# Not run, by their beginning: why. Each must be on some page.
NOT_RUN = {
    "git clone": "the network",
    "apt-get install": "installs packages",
    "./quickstart test": "builds, and runs all tests",
    "./bootstrap": "builds",
    "./configure": "builds",
    "make": "builds, tests or measures",
    "cc examples/simple.c": "needs what make install installs; make installcheck runs it",
    "./simple": "is what cc builds there",
    "bash .ci/run": "runs all tests",
    "akunu-cli run -hf": "the network",
    "build/akunu-cli run -hf": "the network",
    "akunu-cli run -m https://example.org/model.gguf": "the network",
    "akunu-cli run -m model.gguf -f question.txt -ctk": "heads of the small model are no multiple of 32",
    "akunu-cli run -m model.gguf -f long-question.txt --kv-keep": "a longer prompt than the small model takes",
    "akunu-cli inspect -hf": "the network",
    "akunu-cli pull": "the network; tests/apps/cli/pull.py has a server",
    "mpirun": "starts processes; tests/apps/cli/test_ranks.sh runs it",
    "python3 bench/scale.py": "tests/apps/cli/test_scale.sh runs it",
    "akunu-server": "serves until a signal; tests/apps/server runs it",
    "curl": "needs a server",
    "arecord": "needs a microphone",
    "akunu-cli bench --tune": "measures for minutes",
    "akunu-cli quantize model-bf16.gguf model-350m.gguf": "measures for minutes",
    "akunu-cli compress model-bf16.gguf model-int3/": "needs the importance of that model",
    "akunu-cli transcribe": "needs a speech model; tests/speech/transcribe has a tiny one",
    "akunu-cli convert -m whisper-base/": "needs a speech model",
    "akunu-cli verify": "needs an answer of akunu-server; tests/apps/server/test_receipt has some",
    "akunu-cli run -m model.gguf --lora": "needs adapters of that model; test_lora.sh has some",
    "akunu-cli bench --backend opencl": "needs a device",
    "akunu-cli run -m model.gguf --backend opencl": "needs a device",
}
# Run with other words: what `quickstart` runs at its end.
INSTEAD = {
    "./quickstart": 'eval "$(grep -E "^(prompt|set_up)=" "$AK_TEST_SOURCE/quickstart")"; akunu-cli run --raw -p "$prompt" $set_up',
}
# Token ids of the fetched model; a KV cache that the tiny one's narrow heads cannot have.
NEED_REAL = ("akunu-cli detokenize", "akunu-cli run -m coder", "akunu-cli bench -m coder")
# What makes control tokens of the tiny model the markers of fill-in-the-middle.
MARKERS = " ".join("--override-kv tokenizer.ggml.fim_%s_token_id=int:%d" % marker for marker in (("pre", 414), ("suf", 413), ("mid", 415)))
# Commands for other shells than bash.
SHELLS = {"zsh": ["zsh", "-fc", "autoload -Uz compinit && compinit -u -D; "], "fish": ["fish", "-Nc", ""]}

checks = failures = skipped = 0


def check(where, what, good, shown=""):
    global checks, failures
    checks += 1
    if not good:
        failures += 1
        print("FAIL %s: %s\n    %s" % (where, what, shown[-1500:].replace("\n", "\n    ")))


# ---- The pages ------------------------------------------------------------
def pages():
    yield "README.md"
    for name in sorted(os.listdir(os.path.join(SOURCE, "docs"))):
        if name.endswith(".md"):
            yield "docs/" + name


def blocks_of(page):
    """Yields (where, mark, text) of each fenced block, and ("…", None, text) of each other line."""
    mark, first, lines = None, 0, []
    with open(os.path.join(SOURCE, page), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            fence = re.match(r"\s*```(.*)", line)
            if fence and mark is None:
                mark, first, lines = fence.group(1).strip(), number, []
            elif fence:
                yield "%s:%d" % (page, first), mark, "".join(lines)
                mark = None
            elif mark is None:
                yield "%s:%d" % (page, number), None, line
            else:
                lines.append(line)
    check(page, "every block ends", mark is None)


def spans_of(line):
    """Commands in running text. Forms with brackets or placeholders in capitals are none."""
    for code in re.findall(r"(?<!`)`([^`]+)`(?!`)", line):
        code = code.replace("\\|", "|")
        if not re.search(r"(^|[|;&(=] *|sh )(build/)?akunu-cli( |$)", code):
            continue
        if re.search(r"\[|\(-|…|(^|\s)[A-Z]{4,}(\s|$)", code):
            continue
        yield code


# ---- Where commands run ---------------------------------------------------
def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


class Stage:
    """A folder with the files that the pages name, and a home with models."""

    def __init__(self, model):
        self.home = tempfile.mkdtemp()
        models = os.path.join(self.home, ".local/share/akunu/models")
        for folder in (models, self.path("models"), self.path("Downloads"), self.path("bin"), self.path("build")):
            os.makedirs(folder)
        os.symlink(model, os.path.join(models, FETCHED))
        for name in ("model.gguf", "Downloads/model.gguf", os.path.join(models, "qwen3.gguf")):
            os.symlink(TINY, self.path(name))
        os.symlink(REAL, self.path("models/Qwen3-8B-Q4_K_M.gguf"))
        os.symlink(TINY, os.path.join(models, "llama3.2.gguf"))
        for name in ("folder", "Qwen3-0.6B"):
            os.symlink(os.path.join(DATA, "sentence"), self.path(name))
        for name in ("big.gguf", "model-bf16.gguf", "a.gguf", "b.gguf"):
            os.symlink(os.path.join(DATA, "models/qwen3.gguf"), self.path(name))
        os.symlink(TINY, self.path("model"))
        os.symlink(TINY, os.path.join(models, "embeddinggemma.gguf"))
        for folder in ("man", "docs", "examples"):  # copies: commands write there
            subprocess.run(["cp", "-R", os.path.join(SOURCE, folder), self.home], check=True)
            subprocess.run(["chmod", "-R", "u+w", self.path(folder)], check=True)
        for name in ("akunu-cli", "bin/akunu-cli", "build/akunu-cli"):
            write(self.path(name), '#!/bin/sh\nexec "%s" "$@"\n' % CLI)
            os.chmod(self.path(name), 0o755)
        text = "".join("The keeper climbed the stairs for the %d. time.\n" % i for i in range(400))
        for name in ("text.txt", "wiki.test.raw"):
            write(self.path(name), text)
        for name in ("prompt.txt", "letter.txt", "head.c", "tail.c", "a.c", "b.c", "main.c"):
            write(self.path(name), "Once upon a time\n")
        schema = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}}, "required": ["name"], "additionalProperties": False}
        for name in ("schema.json", "person.schema.json"):
            write(self.path(name), json.dumps(schema))
        write(self.path("answer.json"), '{"name": "Ada"}')
        for name in ("chat.json", "conversation.json", "messages.json"):
            write(self.path(name), '[{"role": "user", "content": "Hello"}]')
        write(self.path("list.gbnf"), 'root ::= ("- " [a-z]{1,8} "\\n"){1,3}\n')
        write(self.path("arc-easy.jsonl"), "".join(
            json.dumps({"question": "Which floats?", "choices": {"text": ["stone", "cork"], "label": ["A", "B"]}, "answerKey": "B"}) + "\n" for _ in range(3)))
        self.environment = dict(os.environ, HOME=self.home, AKUNU_CACHE_DIR=self.path("cache"), LC_ALL="C.UTF-8",
                                PATH=self.path("bin") + ":" + os.environ["PATH"])
        for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "NO_COLOR", "AKUNU_MODEL", "AKUNU_THREADS"):
            self.environment.pop(name, None)

    def path(self, name):
        return os.path.join(self.home, name)

    def forget_models(self):
        """Removes models that an earlier page has made."""
        for name in os.listdir(self.home):
            if name.endswith(".gguf") and not os.path.islink(self.path(name)):
                os.unlink(self.path(name))

    def run(self, command, typed=None, **environment):
        """The exit code and the output. Without `typed`, standard input is a terminal at its end."""
        ends, terminal = pty.openpty() if typed is None else (None, subprocess.PIPE)
        shell = next((SHELLS[name] for name in SHELLS if re.search("completion %s.*(source|\\))" % name, command)), ["bash", "-c", ""])
        if not shutil.which(shell[0]):
            return 0, "SKIPPED: no " + shell[0]
        process = subprocess.Popen(shell[:2] + [shell[2] + command], cwd=self.home, env=dict(self.environment, **environment), stdin=terminal,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        done = threading.Event()
        if typed is None:
            os.close(terminal)
            typist = threading.Thread(target=self.leave, args=(ends, done))
            typist.start()
        try:
            shown = process.communicate(typed, timeout=PATIENCE)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            shown = process.communicate()[0] + b"\n(too long)"
        done.set()
        if typed is None:
            typist.join()
            os.close(ends)
        return process.returncode, shown.decode("utf-8", "replace")

    @staticmethod
    def leave(terminal, done):
        """Types Ctrl-D until the command has ended, as it may not listen yet."""
        while not done.wait(0.2):
            try:
                os.write(terminal, b"\x04")
            except OSError:
                return


# ---- Commands -------------------------------------------------------------
def not_run(command):
    for start in NOT_RUN:
        if re.match(re.escape(start) + r"(\s|$)", command):
            unused.discard(start)
            return True
    return False


def run_command(where, command):
    """One command without output on the page."""
    global skipped
    if not_run(command) or command in INSTEAD:
        return
    command = command.replace(" [FLAGS]", "")
    bare = re.fullmatch(r"akunu-cli ([a-z-]+)", command)
    if bare and bare.group(1) in COMMANDS:
        command += " --help"
    real = command.startswith(NEED_REAL)
    if real and not HAS_REAL:
        skipped += 1
        return
    environment = {"AKUNU_N_PREDICT": "8", "AKUNU_REPETITIONS": "1", "AKUNU_SEED": "1", "AKUNU_THREADS": "1",
                   "AKUNU_N_PROMPT": "32", "AKUNU_N_GEN": "8"}
    command = command.replace("-m coder.gguf", "-m model.gguf " + MARKERS)
    if "-m coder" in command:
        environment["AKUNU_CONFIG"] = tiny.path("coder.yaml")
    if real and "-m model.gguf" in command:
        environment["AKUNU_MODEL"] = REAL
        command = command.replace("-m model.gguf", "")
    code, shown = tiny.run(command, **environment)
    check(where, "exit code %d: %s" % (code, command), code == 0, shown)


def commands_of(text):
    return [line for line in text.replace("\\\n", " ").split("\n") if line.strip() and not line.startswith("#")]


def plain(text):
    """Text without what may differ: escapes of terminals, numbers, spaces, the names of folders."""
    text = re.sub(r" \(\d+ of \d+ drafts accepted\)", "", text)  # drafts depend on speed
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace(real.home, "~")
    return re.sub(r"\s", "", re.sub(r"\d+(\.\d+)?", "0", text))


def has_lines(shown, lines):
    """Whether the lines are there, in their order."""
    at, shown = 0, plain(shown)
    for line in lines:
        for part in line.split("…"):
            found = shown.find(plain(part), at)
            if found < 0:
                return line
            at = found + len(plain(part))
    return None


def run_console(where, text):
    global skipped
    sessions = []
    for line in text.split("\n"):
        if line.startswith("$ "):
            sessions.append((line[2:], [], []))
        elif re.match(r"(>|\.\.\.) ", line):
            sessions[-1][1].append(line.split(" ", 1)[1])
        elif line.strip():
            sessions[-1][2].append(line)
    check(where, "a console has commands", sessions)
    for command, typed, lines in sessions:
        if not_run(command):
            continue
        if not HAS_REAL:
            skipped += 1
            continue
        if command in INSTEAD:
            command = INSTEAD[command]
            lines = [line for line in lines if not line.startswith("quickstart: ")]
        if typed:
            command += " -cnv"
            # Greetings are for people.
            lines = [line for line in lines if "tokens of context" not in line]
        code, shown = real.run(command, "".join(line + "\n" for line in typed).encode() if typed else None)
        fails = any(line.startswith("akunu-cli: ") for line in lines)
        check(where, "exit code %d: %s" % (code, command), code == 0 or fails, shown)
        check(where, "the output of: " + command, has_lines(shown, lines) is None, "missing: %s\n%s" % (has_lines(shown, lines), shown))


def run_block(where, mark, text):
    if mark == "sh":
        for command in commands_of(text):
            run_command(where, command.strip())
    elif mark == "console":
        run_console(where, text)
    elif mark in ("json", "jsonl"):
        try:
            for value in text.splitlines() if mark == "jsonl" else [text]:
                json.loads(value)
        except ValueError as error:
            check(where, "is JSON", False, str(error))
    elif mark == "yaml":
        write(tiny.path("page.yaml"), text)
        if "coder:" in text:
            write(tiny.path("coder.yaml"), text)
        code, shown = tiny.run("akunu-cli tokenize -m model.gguf -p x --config page.yaml")
        check(where, "is a configuration", code == 0, shown)
    else:
        check(where, "a block has a mark: sh, console, text …", mark)


def check_example():
    """README's program is the example."""
    with open(os.path.join(SOURCE, "examples/simple.c"), encoding="utf-8") as file:
        example = file.read()
    programs = [text for where, mark, text in blocks_of("README.md") if mark == "c"]
    check("README.md", "the program is examples/simple.c", example in programs)


check("the model", "there is %s, which AKUNU_REQUIRE_MODEL=1 requires" % REAL, os.environ.get("AKUNU_REQUIRE_MODEL") != "1" or os.path.exists(REAL))
COMMANDS = re.findall(r"^  ([a-z-]+) ", subprocess.run([CLI, "--help"], stdout=subprocess.PIPE, check=True).stdout.decode(), re.M)
unused = set(NOT_RUN)
tiny, real = Stage(TINY), Stage(REAL if HAS_REAL else TINY)
try:
    for page in pages():
        later = []
        tiny.forget_models()
        for where, mark, text in blocks_of(page):
            if mark is None:
                check(where, "a command is in a marked block", not re.match(r"    +(\$ )?(build/)?akunu-cli ", text), text)
                later += [(where, span) for span in spans_of(text)]
            else:
                run_block(where, mark, text)
        for where, span in later:  # which may name what a block of their page makes
            run_command(where, span)
    check_example()
    for start in sorted(unused):
        check("NOT_RUN", "no page has '%s' any more" % start, False)
finally:
    shutil.rmtree(tiny.home)
    shutil.rmtree(real.home)
print("docs: %d of %d checks passed%s" % (checks - failures, checks, ", %d commands need the fetched model" % skipped if skipped else ""))
sys.exit(failures > 0)
