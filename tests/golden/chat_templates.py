#!/usr/bin/env python3
"""Compares akunu's rendering of chat templates with transformers': outputs must be equal byte
by byte, and what fails must fail in both.

usage: chat_templates.py FOLDER CLI [-v] [NAME...]

FOLDER holds templates as NAME.jinja, or as NAME.json with a chat_template in it (a
tokenizer_config.json); CLI is the akunu-cli to test. Needs transformers and jinja2. Prints a
line for each difference, and ends with 1 where there is one.
"""
import copy
import json
import os
import subprocess
import sys
import tempfile

from transformers.utils.chat_template_utils import render_jinja_template

BOS, EOS = "<s>", "</s>"

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Wetter \u00fcberall <now> & \"here\"",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "a city's name"},
        "unit": {"type": "string", "enum": ["c", "f"], "default": "c"},
        "days": {"type": ["integer", "null"], "minimum": 1},
        "where": {"type": "object", "properties": {"lat": {"type": "number"}, "lon": {"type": "number"}}, "required": ["lat"]},
        "tags": {"type": "array", "items": {"type": "string"}}},
        "required": ["city"]}, "return": {"type": "string", "description": "what it is like"}}}
ADD = {"type": "function", "function": {
    "name": "add", "description": "adds", "parameters": {"type": "object", "properties": {
        "a": {"type": "number"}, "b": {"anyOf": [{"type": "integer"}, {"type": "string"}]}}, "required": ["a", "b"]}}}
BARE = {"name": "bare", "description": "without its function", "parameters": {"type": "object", "properties": {}}}


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


def call(name, arguments, number=1):
    return {"id": f"call_{number:05d}", "type": "function", "function": {"name": name, "arguments": arguments}}


SYSTEM = {"role": "system", "content": "You are \u201cbrief\u201d.\n\nAlways."}
HI = [user("Hi")]
PAIR = [user("  What is 2+2? \n"), assistant("4"), user("Gr\u00fc\u00dfe, \u4f60\u597d \U0001f600 <b>&amp;</b>\n```py\nprint('x')\n```")]
REASONED = [user("Why?"), assistant("Because.", reasoning_content="Let me think.\nYes."), user("And?"),
            assistant("So.", reasoning_content=""), user("Ok")]
INLINE = [user("Why?"), assistant("<think>\nhm\n</think>\n\nBecause."), user("And?")]
CALL = [user("Weather in K\u00f6ln?"),
        assistant("", tool_calls=[call("get_weather", {"city": "K\u00f6ln", "days": 3, "where": {"lat": 50.9}, "tags": ["a", "b"]})]),
        {"role": "tool", "name": "get_weather", "tool_call_id": "call_00001", "content": "{\"temp\": 21.5}"},
        assistant("21.5 degrees."), user("Thanks")]
CALL_TEXT = [user("Add"), assistant(None, tool_calls=[call("add", "{\"a\": 1, \"b\": \"x\"}")]),
             {"role": "tool", "name": "add", "tool_call_id": "call_00001", "content": "1x"}]
CALLS = [SYSTEM, user("Both"),
         assistant("I will.", tool_calls=[call("get_weather", {"city": "Ulm"}, 1), call("add", {"a": 1.5, "b": 2, "none": None, "yes": True}, 2)]),
         {"role": "tool", "name": "get_weather", "tool_call_id": "call_00001", "content": "rain"},
         {"role": "tool", "name": "add", "tool_call_id": "call_00002", "content": "3.5"}]
CALL_NULL = [user("Add"), assistant(None, tool_calls=[call("add", {"a": 1, "b": None})], refusal=None),
             {"role": "tool", "name": "add", "tool_call_id": "call_00001", "content": "1"},
             assistant("1.", tool_calls=None, name=None), user("Thanks")]
THOUGHT_CALL = [user("Weather?"), assistant("", reasoning_content="I need the tool.", tool_calls=[call("get_weather", {"city": "Bonn"})]),
                {"role": "tool", "name": "get_weather", "tool_call_id": "call_00001", "content": "sun"}]
PARTS = [{"role": "system", "content": [{"type": "text", "text": "Be kind."}]},
         {"role": "user", "content": [{"type": "text", "text": "Look: "}, {"type": "image"}, {"type": "text", "text": "what is it?"}]}]
PARTS_BACK = PARTS + [{"role": "assistant", "content": [{"type": "text", "text": "A cat."}]}, user("Sure?")]

# What each case gives: messages, tools, generation prompt, further variables.
CASES = [
    ("hi", HI, None, True, {}),
    ("hi, no prompt", HI, None, False, {}),
    ("system", [SYSTEM] + HI, None, True, {}),
    ("pair", PAIR, None, True, {}),
    ("pair, no prompt", [SYSTEM] + PAIR, None, False, {}),
    ("ends with assistant", [SYSTEM] + PAIR[:2], None, False, {}),
    ("tools", [SYSTEM] + HI, [WEATHER, ADD], True, {}),
    ("tools alone", HI, [WEATHER], True, {}),
    ("bare tool", HI, [BARE], True, {}),
    ("no tools in a list", HI, [], True, {}),
    ("call", CALL, [WEATHER], True, {}),
    ("call as text", CALL_TEXT, [ADD], True, {}),
    ("call beside null", CALL_NULL, [ADD], True, {}),
    ("calls", CALLS, [WEATHER, ADD], True, {}),
    ("calls without tools", CALLS, None, True, {}),
    ("thought and call", THOUGHT_CALL, [WEATHER], True, {"enable_thinking": True}),
    ("reasoning", REASONED, None, True, {}),
    ("reasoning, thinking", REASONED, None, True, {"enable_thinking": True, "thinking": True}),
    ("reasoning, no thinking", [SYSTEM] + REASONED, None, True, {"enable_thinking": False, "thinking": False}),
    ("inline reasoning", INLINE, None, True, {"enable_thinking": True}),
    ("parts", PARTS, None, True, {}),
    ("parts and back", PARTS_BACK, None, False, {}),
    ("two users", HI + HI, None, True, {}),
    ("developer", [{"role": "developer", "content": "Obey."}] + HI, [WEATHER], True, {"reasoning_effort": "high"}),
    ("odd role", [{"role": "narrator", "content": "Once"}] + HI, None, True, {}),
    ("variables", [SYSTEM] + PAIR, [WEATHER], True, {"date_string": "1 Jan 2025", "tools_in_user_message": False, "custom_tools": None,
                                                     "add_vision_id": True, "model_identity": "You are X.", "builtin_tools": ["python"]}),
    ("documents", HI, None, True, {"documents": [{"title": "A", "text": "a text"}, {"title": "B", "text": "b"}]}),
]


def expected(template, case):
    """What transformers' apply_chat_template gives; None: it fails."""
    _, messages, tools, prompt, variables = case
    variables = dict(variables)
    # null content is None; another null member of a message is absent, see src/text/template/render.c
    messages = [{k: v for k, v in m.items() if v is not None or k == "content"} for m in copy.deepcopy(messages)]
    try:
        rendered, _ = render_jinja_template([messages], tools=copy.deepcopy(tools), documents=variables.pop("documents", None),
                                            chat_template=template, add_generation_prompt=prompt,
                                            **{"bos_token": BOS, "eos_token": EOS, **variables})
        return rendered[0].encode(), None
    except Exception as error:  # whatever a template does wrong
        return None, f"{type(error).__name__}: {error}"


def write(folder, name, value):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False)
    return path


def actual(cli, folder, template, case):
    _, messages, tools, prompt, variables = case
    variables = dict(variables)
    command = [cli, "apply-template", "--chat-template-file", template, "--bos-token", BOS, "--eos-token", EOS,
               "--messages", write(folder, "messages.json", messages)]
    documents = variables.pop("documents", None)
    if tools is not None:
        command += ["--tools", write(folder, "tools.json", tools)]
    if documents is not None:
        command += ["--documents", write(folder, "documents.json", documents)]
    if variables:
        command += ["--kwargs", json.dumps(variables)]
    if not prompt:
        command += ["--no-generation-prompt"]
    done = subprocess.run(command, capture_output=True)
    return (done.stdout if done.returncode == 0 else None), done.stderr.decode(errors="replace").strip()


def templates_of(folder, wanted):
    """Names and texts of all templates of a folder."""
    for file in sorted(os.listdir(folder)):
        path = os.path.join(folder, file)
        name, ending = os.path.splitext(file)
        if (wanted and name not in wanted) or ending not in (".jinja", ".json", ".j2"):
            continue
        with open(path, encoding="utf-8", newline="") as handle:
            text = handle.read()
        if ending != ".json":
            yield name, text
            continue
        value = json.loads(text).get("chat_template")
        for entry in value if isinstance(value, list) else [{"name": "", "template": value}] if value else []:
            yield f"{name}:{entry['name']}", entry["template"]


def show(got, want):
    at = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))
    return f"  differs at byte {at}\n    got  {got[max(0, at - 40):at + 60]!r}\n    want {want[max(0, at - 40):at + 60]!r}"


def compare(cli, scratch, name, text, verbose):
    """Gives how many outputs, failures and differences there were."""
    counts = [0, 0, 0]
    path = os.path.join(scratch, "template.jinja")
    with open(path, "w", encoding="utf-8", newline="") as handle:
        handle.write(text)
    for case in CASES:
        want, why = expected(text, case)
        got, message = actual(cli, scratch, path, case)
        if (want is None) != (got is None):
            counts[2] += 1
            print(f"DIFFERS {name} [{case[0]}]\n  akunu: {'fine' if got is not None else message}\n  jinja2: {why or 'fine'}")
        elif want != got:
            counts[2] += 1
            print(f"DIFFERS {name} [{case[0]}]\n{show(got, want)}")
        else:
            counts[1 if want is None else 0] += 1
            if verbose and want is None:
                print(f"both fail {name} [{case[0]}]\n  akunu: {message}\n  jinja2: {why}")
    return counts


def main():
    arguments = [a for a in sys.argv[1:] if a != "-v"]
    if len(arguments) < 2:
        sys.exit(__doc__)
    total, n = [0, 0, 0], 0
    with tempfile.TemporaryDirectory() as scratch:
        for name, text in templates_of(arguments[0], arguments[2:]):
            counts = compare(os.path.abspath(arguments[1]), scratch, name, text, "-v" in sys.argv)
            total = [a + b for a, b in zip(total, counts)]
            n += 1
    print(f"{n} templates, {len(CASES)} conversations each: {total[0]} equal, {total[1]} fail in both, {total[2]} differ")
    sys.exit(total[2] > 0)


main()
