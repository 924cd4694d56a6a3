#!/usr/bin/env python3
"""Makes tests/data/calls/*.json: what models write of each format, and what it means.

usage: calls.py TEMPLATES OUT

TEMPLATES is a folder with the chat templates of published models (llama.cpp has one,
models/templates). A template shows an earlier answer in the form in which the model makes
one: conversations are rendered by transformers' own Jinja, the part that the model would
have written is cut out, and the message that went in is what must come out again. Where
transformers' parser knows the form from a response template, it must agree. What models
do beyond their templates is in calls_by_hand.json.

Needs transformers (with its chat extra, jinja2).
"""
import copy
import glob
import json
import os
import sys

from transformers.utils.chat_parsing import parse_response
from transformers.utils.chat_template_utils import _compile_jinja_template

TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "The weather of a place", "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"},
                                         "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}},
        "required": ["city"]}}},
    {"type": "function", "function": {"name": "search_notes", "description": "Looks for notes", "parameters": {
        "type": "object", "properties": {"query": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}},
                                         "range": {"type": "object"}, "exact": {"type": "boolean"}, "weight": {"type": "number"}},
        "required": ["query"]}}},
    {"type": "function", "function": {"name": "now", "description": "The time", "parameters": {"type": "object", "properties": {}}}},
]
for tool in TOOLS:
    for key, schema in tool["function"]["parameters"]["properties"].items():
        schema["description"] = f"What {key} is"


def call(name, **arguments):
    return {"id": "abcDEF123", "type": "function", "function": {"name": name, "arguments": arguments}}


PARIS = call("get_weather", city="Paris", days=3)
OSLO = call("get_weather", city="Oslo", unit="celsius")
NOTES = call("search_notes", query="naïve \"quoted\" C:\\temp\nline 2 日本語 😀 <b>&amp;</b>", tags=["a, b", "it's"],
             range={"from": 1, "to": {"day": -2.5, "last": True}}, exact=False, weight=0.25)
CODE = call("search_notes", query="def f(x):\n    return {\"a\": [x, 'b']}\n\nprint(f(1))  # done")

# name → (content, calls, reasoning)
CONVERSATIONS = {
    "text": ("Hello, world!\nWhat's up? 1 < 2 && a[0] {x}", [], None),
    "a call": ("", [PARIS], None),
    "two calls": ("", [PARIS, OSLO], None),
    "text and a call": ("Let me look.", [PARIS], None),
    "arguments of all kinds": ("", [NOTES], None),
    "code": ("", [CODE], None),
    "no arguments": ("", [call("now")], None),
    "reasoning and text": ("It is 42.", [], "I think\nand so on."),
    "reasoning and a call": ("", [PARIS], "I need the weather. {\"name\": \"get_weather\"}"),
    "reasoning, text and two calls": ("Let me look at both.", [PARIS, NOTES], "Two places."),
}

# format → what was published with it: template, end of the answer, what to leave out, keyword arguments
SOURCES = {
    "hermes": [("Qwen-Qwen2.5-7B-Instruct", "<|im_end|>", "reasoning", {}),
               ("Qwen-Qwen3-0.6B", "<|im_end|>", "", {}),
               ("NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", "<|im_end|>", "reasoning content", {}),
               ("ibm-granite-granite-4.0", "<|end_of_text|>", "reasoning", {})],
    "qwen3-coder": [("Qwen3-Coder", "<|im_end|>", "reasoning", {}),
                    ("Qwen3.5-4B", "<|im_end|>", "", {}),
                    ("NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "<|im_end|>", "", {}),
                    ("StepFun3.5-Flash", "<|im_end|>", "", {})],
    "seed-oss": [("ByteDance-Seed-OSS", "<seed:eos>", "", {})],
    "glm": [("GLM-4.6", "<|user|>", "", {}), ("GLM-4.7-Flash", "<|user|>", "", {})],
    "minimax-m2": [("MiniMax-M2", "[e~[", "", {})],
    "kimi-k2": [("Kimi-K2-Instruct", "<|im_end|>", "reasoning", {"id": "functions"}),
                ("Kimi-K2-Thinking", "<|im_end|>", "", {"id": "functions"})],
    "deepseek-r1": [("deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "<｜end▁of▁sentence｜>", "reasoning content", {})],
    "deepseek-v3.1": [("deepseek-ai-DeepSeek-V3.1", "<｜end▁of▁sentence｜>", "reasoning", {})],
    "deepseek-v3.2": [("deepseek-ai-DeepSeek-V3.2", "<｜end▁of▁sentence｜>", "", {"thinking": True}),
                      ("deepseek-ai-DeepSeek-V4", "<｜end▁of▁sentence｜>", "", {"thinking": True})],
    "mistral-list": [("mistralai-Mistral-Nemo-Instruct-2407", "</s>", "reasoning content", {})],
    "mistral": [("Mistral-Small-3.2-24B-Instruct-2506", "</s>", "reasoning content", {}),
                ("unsloth-mistral-Devstral-Small-2507", "</s>", "reasoning", {}),
                ("mistralai-Ministral-3-14B-Reasoning-2512", "</s>", "reasoning", {})],
    "harmony": [("openai-gpt-oss-120b", "", "parallel content", {})],
    "gemma4": [("google-gemma-4-31B-it", "<turn|>", "reasoning", {})],
    "lfm2": [("LFM2.5-8B-A1B", "<|im_end|>", "kinds", {})],
    "command-r7b": [("CohereForAI-c4ai-command-r7b-12-2024-tool_use", "<|END_OF_TURN_TOKEN|>", "reasoning content", {})],
    "nemotron-v2": [("NVIDIA-Nemotron-Nano-v2", "<SPECIAL_12>", "reasoning text content", {})],
    "apriel": [("unsloth-Apriel-1.5", "<|end|>", "reasoning", {})],
    "functionary-v3.1": [("meetkai-functionary-medium-v3.1", "<|eot_id|>", "reasoning content", {})],
    "functools": [("fireworks-ai-llama-3-firefunction-v2", "<|eot_id|>", "reasoning content", {})],
    "llama3": [("meta-llama-Llama-3.1-8B-Instruct", "<|eot_id|>", "reasoning content parallel", {}),
               ("meta-llama-Llama-3.2-3B-Instruct", "<|eot_id|>", "reasoning content parallel", {})],
    "command-r": [("CohereForAI-c4ai-command-r-plus-tool_use", "<|END_OF_TURN_TOKEN|>", "reasoning content", {})],
    "granite": [], "smollm3": [], "phi4-mini": [], "functiongemma": [], "gemma": [], "python": [], "generic": [],
}

# Response templates, as published with Qwen3 and Gemma 4: a second opinion.
PARSERS = {
    "Qwen-Qwen3-0.6B": {
        "start_anchor": "<|im_start|>assistant\n",
        "fields": {
            "reasoning_content": {"open": "<think>", "close": "</think>"},
            "tool_calls": {"open": "<tool_call>", "close": "</tool_call>", "content": "json", "repeats": True,
                           "transform": {"function": {"name": "{content.name}", "arguments": "{content.arguments}"}}},
            "content": {"repeats": True, "join": ""},
        }},
    "Qwen3.5-4B": {
        "start_anchor": "<|im_start|>assistant\n",
        "fields": {
            "reasoning_content": {"open": "<think>", "close": "</think>"},
            "tool_calls": {"open_pattern": r"<tool_call>\s*<function=(?P<name>[^>]+)>", "close_pattern": r"</function>\s*</tool_call>",
                           "repeats": True, "content": "xml-inline",
                           "content_args": {"tag_pattern": r"<parameter=(?P<key>[^>]+)>\n(?P<value>.*?)\n</parameter>"},
                           "transform": {"function": {"name": "{name}", "arguments": "{content}"}}},
            "content": {"repeats": True, "join": ""},
        }},
    "google-gemma-4-31B-it": {
        "start_anchor": "<|turn>model\n",
        "fields": {
            "reasoning_content": {"open": "<|channel>thought\n", "close": "<channel|>"},
            "tool_calls": {"open_pattern": r"<\|tool_call>call:(?P<name>\w+)", "close": "<tool_call|>", "repeats": True, "content": "json",
                           "content_args": {"unquoted_keys": True, "string_delims": [["<|\"|>", "<|\"|>"]]},
                           "transform": {"function": {"name": "{name}", "arguments": "{content}"}}},
            "content": {"repeats": True, "join": ""},
        }},
}


def raise_exception(message):
    raise ValueError(message)


class Template:
    def __init__(self, folder, name, kwargs):
        with open(os.path.join(folder, name + ".jinja"), encoding="utf-8") as f:
            self.source = f.read()
        self.template = _compile_jinja_template(self.source)
        self.template.environment.is_safe_attribute = lambda *_: True  # Kimi's appends to lists
        self.kwargs = {k: v for k, v in kwargs.items() if k != "id"}

    def render(self, messages, prompt):
        return self.template.render(messages=copy.deepcopy(messages), tools=TOOLS, documents=None, functions=json.dumps(TOOLS), add_generation_prompt=prompt,
                                    bos_token="<s>", eos_token="</s>", **self.kwargs)


def in_templates(message, as_text):
    """The message as templates take it: arguments are an object, or its text."""
    message = copy.deepcopy(message)
    for one in message.get("tool_calls", []):
        if as_text:
            one["function"]["arguments"] = json.dumps(one["function"]["arguments"], ensure_ascii=False)
    return message


def common(a, b):
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return n


def written(template, message, end):
    """The prompt, and what the model would have written after it."""
    user = [{"role": "user", "content": "Hi"}]
    prompt = template.render(user, True)
    whole = template.render(user + [message], False)
    # What a template puts before an answer that is history may differ from what it ends a prompt with.
    n = len(prompt) if whole.startswith(prompt) else common(prompt, whole)
    while n < len(prompt) and whole[n - 1] not in ">]\n":
        n -= 1
    text = whole[n:]
    for stop in end, "<|tool_response>", "<|eom_id|>":
        if stop and stop in text:
            text = text[:text.index(stop)]
    return prompt[:n], text.rstrip("\n")


def wanted(content, calls, reasoning, ids):
    message = {"role": "assistant", "content": content if content or not calls else None}
    if reasoning:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = [{"function": c["function"], **({"id": c["id"]} if ids else {})} for c in calls]
    return message


def second_opinion(name, prompt, text, message):
    got = parse_response(text, PARSERS[name], prefix=prompt, tools=TOOLS)
    want = {"content": message["content"] or "", "reasoning_content": message.get("reasoning_content", ""),
            "tool_calls": [{"function": c["function"]} for c in message.get("tool_calls", [])]}
    got = {k: got.get(k) or type(want[k])() for k in want}
    assert got == want, f"{name}: transformers reads {got}, where {want} was meant"


def cases_of(folder, source):
    name, end, without, kwargs = source
    template = Template(folder, name, kwargs)
    for title, (content, calls, reasoning) in CONVERSATIONS.items():
        parts = {"reasoning": reasoning, "content": content and calls, "parallel": len(calls) > 1, "kinds": calls and calls[-1] in (NOTES, CODE),
                 "text": content and not calls and not reasoning}
        if any(parts[part] for part in without.split()):
            continue
        calls = copy.deepcopy(calls)
        for i, one in enumerate(calls):
            one["id"] = f"functions.{one['function']['name']}:{i}" if kwargs.get("id") else f"abcDEF{i:03}"
        message = {"role": "assistant", "content": content}
        if reasoning:
            message.update(reasoning_content=reasoning, thinking=reasoning, reasoning=reasoning)
        if calls:
            message["tool_calls"] = calls
        for as_text in (False, True):
            try:
                prompt, text = written(template, in_templates(message, as_text), end)
                break
            except Exception as error:  # a template's own refusal
                why = error
        else:
            print(f"{name}: {title}: {why}", file=sys.stderr)
            continue
        if reasoning and reasoning not in text:  # the template forgets it
            continue
        # Nemo's template puts the id last, where it is known too late.
        want = wanted(content, calls, reasoning, "Nemo" not in name and any(c["id"] in text for c in calls))
        if name in PARSERS:
            second_opinion(name, prompt, text, want)
        yield {"name": f"{name}: {title}", "prompt": prompt[-200:], "text": text, "message": want}


def main():
    folder, out = sys.argv[1:]
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "calls_by_hand.json"), encoding="utf-8") as f:
        by_hand = json.load(f)
    for name, sources in SOURCES.items():
        cases = [case for source in sources for case in cases_of(folder, source)] + by_hand.get(name, [])
        with open(os.path.join(out, name + ".json"), "w", encoding="utf-8") as f:
            json.dump({"format": name, "tools": TOOLS, "cases": cases}, f, ensure_ascii=False, indent=1)
            f.write("\n")
        print(name, len(cases))


main()
