#!/usr/bin/env python3
"""Conversations with null members, and what transformers makes of them by templates that ask for
them in different ways: tests/data/jinja/null_content.json for tests/text/template/test_jinja.c.

usage: null_content.py OUT.json      (needs transformers and jinja2)

The outputs are those of all templates for the first conversation, then for the second, and so on;
null: the template fails. A template of akunu sees null content as None and any other null member
of a message as absent, so such a member is not given to transformers. Null further down is None.
"""
import copy
import json
import sys

from transformers.utils.chat_template_utils import render_jinja_template

CALL = {"id": "call_00001", "type": "function", "function": {
    "name": "add", "arguments": {"a": 1, "b": None, "c": [None, {"d": None}]}}}
TOOLS = [{"type": "function", "function": {"name": "add", "description": None, "parameters": {
    "type": "object", "properties": {"a": {"type": ["integer", "null"], "default": None},
                                     "b": {"enum": [None, "x"]}, "c": None}}}}]
USER = {"role": "user", "content": "Add"}
RESULT = {"role": "tool", "tool_call_id": "call_00001", "content": "3"}

CONVERSATIONS = [
    [USER, {"role": "assistant", "content": None, "tool_calls": [CALL], "refusal": None}, RESULT],
    [USER, {"role": "assistant", "content": None, "tool_calls": None, "name": None, "reasoning_content": None}],
    [{"role": "system", "content": None}, {"role": "user", "content": "", "tool_calls": None}],
    [USER, {"role": "assistant", "tool_calls": [CALL]}, RESULT],
    [{"role": "user", "content": [{"type": "text", "text": None}, {"type": "text", "text": "x", "cache_control": None}]}],
]

# What follows is done for each message m.
LINES = """
{{ m.content }}
{{ m['content'] }}
{{ m.content is none }}
{{ m.content is not none }}
{{ m.content is defined }}
{{ m['content'] is defined and m['content'] is not none }}
{{ m.content is string }}
{{ m.content is iterable }}
{{ 'content' in m }}
{{ m.content or '' }}
{{ (m.content or '') + '!' }}
{{ m.content|default('absent') }}
{{ m.content|default('empty', true) }}
{{ m.get('content') }}
{{ m.get('content', 'absent') }}
{{ m.content if m.content else 'nothing' }}
{{ m.content == none }}
{{ m.content == '' }}
{{ m.content ~ '!' }}
{{ m.content|string }}
{{ m.content|tojson }}
{{ m.content|length }}
{{ m.content|trim }}
{{ m.content + '!' }}
{{ m.content.split('x') }}
{{ m.content[0] }}
{{ '</think>' in m.content }}
{% if m.content %}{{ '</think>' in m.content }}{% else %}no content{% endif %}
{% if m.content is defined and '</think>' in m.content %}yes{% endif %}
{% if m.content is string %}text{% elif m.content is none %}none{% else %}parts{% endif %}
{% if m.role == 'assistant' and m.tool_calls is defined %}{{ m.tool_calls|length }} calls{% endif %}
{% if 'tool_calls' in m %}{{ m['tool_calls']|length }} calls{% else %}no calls{% endif %}
{% for c in m.tool_calls %}{{ c.function.arguments }}{% endfor %}
{% for c in m.tool_calls %}{{ c.function.arguments|tojson }}{% endfor %}
{% for c in m.tool_calls %}{% for k, v in c.function.arguments.items() %}{{ k }}={{ v|tojson if v is not string else v }};{% endfor %}{% endfor %}
{% for c in m.tool_calls %}{{ c.function.arguments.b is none }}{{ c.function.arguments.b is defined }}{{ c.function.arguments.z is defined }}{% endfor %}
{% for p in m.content %}{{ p.text }}{% endfor %}
{{ m.refusal is defined }}{{ m.name is defined }}{{ m.reasoning_content is defined }}
{{ m }}
{{ m|tojson }}
""".strip("\n").split("\n")

WHOLE = [
    "{{ tools }}",
    "{{ tools|tojson }}",
    "{{ tools[0]|tojson(indent=4) }}",
    "{% for t in tools %}{{ t.function.description is none }}{{ t.function.description or 'none' }}{% endfor %}",
    "{% for n, p in tools[0].function.parameters.properties.items() %}{{ n }}:{{ p.default is defined }}{{ p.enum|tojson if p.enum else p }};{% endfor %}",
    "{{ messages|tojson }}",
    "{{ messages|map(attribute='content')|list }}",
    "{{ messages|selectattr('content')|list|length }}{{ messages|selectattr('content', 'none')|list|length }}",
    "{{ messages|rejectattr('content', 'defined')|list|length }}",
    "{{ messages[-1].content is none }}",
    "{% if messages[0].role == 'system' %}{% set s = messages[0].content %}[{{ s }}]{{ s is none }}{% endif %}",
]


def seen(message):
    """What of a message a template of akunu sees."""
    return {k: v for k, v in message.items() if v is not None or k == "content"}


def render(template, messages):
    try:
        rendered, _ = render_jinja_template([[seen(m) for m in copy.deepcopy(messages)]], tools=copy.deepcopy(TOOLS),
                                            chat_template=template, add_generation_prompt=False)
        return rendered[0]
    except Exception:  # whatever a template does wrong
        return None


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    templates = ["{% for m in messages %}" + line + "|{% endfor %}" for line in LINES] + WHOLE
    outputs = [render(t, messages) for messages in CONVERSATIONS for t in templates]
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump({"conversations": CONVERSATIONS, "tools": TOOLS, "templates": templates, "outputs": outputs}, file,
                  ensure_ascii=True, indent=0)
        file.write("\n")


main()
