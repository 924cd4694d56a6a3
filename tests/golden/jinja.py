#!/usr/bin/env python3
"""Templates with what Python's jinja2 makes of them, configured as transformers configures it:
tests/data/jinja/cases.json for tests/text/template/test_jinja.c.

usage: jinja.py OUT.json      (needs transformers and jinja2)

A case is {"template", "variables", "output"} or, where jinja2 fails, {…, "line"}: the line that
it names. strftime_now sees 2024-07-26 13:05:09.
"""
import datetime
import json
import sys
import traceback

import jinja2
import jinja_edges
from transformers.utils import chat_template_utils

NOW = datetime.datetime(2024, 7, 26, 13, 5, 9)


class FixedTime(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


chat_template_utils.datetime = FixedTime

DATA = {
    "name": "World", "n": 7, "x": 2.5, "yes": True, "no": False, "nothing": None, "empty": "", "blank": "  a b\t\n",
    "words": ["pear", "Apple", "fig", "apple"], "numbers": [3, 1, 2], "mixed": [1, "two", 3.0, None, True, [4], {"k": "v"}],
    "nested": {"a": {"b": [10, 20, {"c": "deep"}]}, "items": "shadow", "list": [1]},
    "people": [{"name": "Ann", "age": 30, "city": "Ulm"}, {"name": "bob", "age": 25, "city": "ulm"}, {"name": "Cid", "age": 30, "city": "Bonn"}],
    "text": "Gr\u00fc\u00dfe, \u4f60\u597d \U0001f600!", "lines": "one\ntwo\r\n\nthree\u2028four", "html": "<a href=\"x\">T&amp;C's</a>",
    "big": 9007199254740993, "tiny": 1e-7, "huge": 1e22, "third": 0.1, "negative": -7,
}

EXPRESSIONS = """
name ~ n ~ x ~ yes ~ nothing
1 + 2 * 3 - 4 / 2
7 // 2 ~ " " ~ (-7) // 2 ~ " " ~ 7 % 3 ~ " " ~ (-7) % 3 ~ " " ~ 7 % -3
7.5 // 2 ~ " " ~ -7.5 % 2 ~ " " ~ 2 ** 10 ~ " " ~ 2 ** -1 ~ " " ~ 2 ** 3 ** 2
-2 ** 2
1 / 3
10 / 5
1e16 ~ " " ~ 1e15 ~ " " ~ 123456789012345680.0 ~ " " ~ 1e-5 ~ " " ~ 0.0001 ~ " " ~ 5e-324 ~ " " ~ -0.0
third + 0.2
tiny ~ " " ~ huge ~ " " ~ big
1_000 + 0x1F + 0b101 + 0o17 + 1_0.5_0e1_0
(1 < 2 < 3) ~ ""
1 < n <= 7 != 8
1 == 1.0 ~ (True == 1) ~ ("1" == 1) ~ (none == false)
[1, 2] == [1, 2.0]
(1, 2) == [1, 2]
{"a": 1, "b": [2]} == {"b": [2], "a": 1}
[1, 2] < [1, 3]
"b" > "a"
"ap" in "apple"
"x" not in words and "fig" in words
"a" in nested and "z" not in nested
2 in (1, 2) or 1 / 0
not yes or no
not not n
yes and name or "never"
no and name or "else"
"a" if n > 5 else "b"
"only" if no
("only" if no) is undefined
[1, 2, 3] + [4]
(1,) + (2, 3)
"ab" * 3
[0] * 3
2 * "xy"
"-" * -1
[]
()
(1,)
{}
{"a": 1, 2: "b", none: true, 1.5: [1, (2,)]}
["it's", 'say "hi"', "both ' and \\"", "tab\\t nl\\n \\\\ \\x01 \\u00e9 \\u200b"]
mixed
"a" "b" 'c'
"\\x41\\u00fc\\101\\q\\
z"
"\\\u00fc"
words[0] ~ words[-1] ~ words[9]
words[1:3]
words[::-1]
words[-2:]
words[:-1]
words[::2]
text[7:9] ~ text[-2] ~ text[::-1]
"hello"[1:-1:2] ~ "hello"[10:] ~ "hello"[:-10]
range(10)[2:8:3]
range(10)[::-4]
range(3)
range(5, 1, -2)|list
nested.a.b[2].c
nested["a"]["b"][0]
nested.a.b.1
nested.missing
nested.missing is defined
nested.items is callable
nested["items"]
nested.list
people[0].name.upper()
people[0]["age"]
mixed[6]["k"]
nothing.x is undefined
name.foo is undefined
missing is undefined ~ missing ~ (missing is none)
missing == other
missing|default("d")
nothing|default("d") ~ nothing|default("d", true) ~ empty|d("e", boolean=true)
n is odd and n is not even
n is divisibleby 7
n is divisibleby(3)
n is number and x is float and n is integer and yes is boolean
yes is integer ~ yes is number ~ yes is true ~ no is false
name is string and words is sequence and nested is mapping and words is iterable
nested is sequence ~ name is sequence ~ n is sequence ~ n is iterable
nothing is none ~ missing is none
range is callable ~ name is callable
n is eq 7 ~ (n is ne(7)) ~ (n is gt 6) ~ (n is lessthan 6) ~ (n is ge 7) ~ (n is le 7) ~ (n is equalto 7)
"fig" is in words
nothing is sameas none
"upper" is filter ~ ("nope" is filter) ~ ("odd" is test)
"ABC" is upper ~ ("aBc" is lower) ~ ("123" is upper)
name.upper() ~ name.lower() ~ name.title() ~ name.swapcase() ~ "aB cD".capitalize()
text.upper() ~ text.lower()
"\u03a3\u0391\u03a3 \u03a3".lower()
"they're bill's friends".title() ~ "\u01c6x".title()
"they're (all) {my} [own]-made <x>"|title
blank.strip() ~ "|" ~ blank.lstrip() ~ "|" ~ blank.rstrip()
"xxhixx".strip("x") ~ "abchiabc".lstrip("cba") ~ "abchiabc".rstrip("abc")
"a,b,,c".split(",")
"a,b,,c".split(",", 1)
"a,b,,c".rsplit(",", 2)
"  a  b c ".split()
"  a  b c ".split(none, 1)
"  a  b c ".rsplit(maxsplit=1)
"a--b".partition("--")
"a--b--c".rpartition("--")
"ab".partition("x")
lines.splitlines()
lines.splitlines(true)
"abcabc".find("c") ~ "abcabc".rfind("c") ~ "abcabc".find("z") ~ "abcabc".find("c", 3) ~ "abcabc".index("b") ~ text.find("\u597d")
"abcabc".count("bc") ~ "aaa".count("aa") ~ "abc".count("")
"abc".startswith("ab") ~ "abc".startswith(("x", "a")) ~ "abc".endswith("bc") ~ "abc".startswith("b", 1) ~ "abc".endswith(())
"aXbXc".replace("X", "-") ~ "aXbXc".replace("X", "-", 1) ~ "abc".replace("", "-")
"abc".removeprefix("ab") ~ "abc".removesuffix("bc") ~ "abc".removeprefix("x")
", ".join(words)
"-".join("abc")
"42".zfill(5) ~ "-42".zfill(5) ~ "a".center(5, "*") ~ "ab".center(5) ~ "a".ljust(3) ~ "a".rjust(3, ".")
"a\\tb".expandtabs(4)
"12".isdigit() ~ "\u00b2".isdigit() ~ "\u00b2".isdecimal() ~ "\u00bd".isnumeric() ~ "ab1".isalnum() ~ "ab".isalpha() ~ " ".isspace() ~ "".isdigit()
"AB".isupper() ~ "ab".islower() ~ "Ab Cd".istitle() ~ "a b".isidentifier() ~ "a".isascii() ~ "\\n".isprintable()
"{} and {}".format(1, "b")
"{1}{0}{1} {name} {p.age} {l[1]}".format("a", "b", name="N", p=people[0], l=numbers)
"{:>6}|{:<6}|{:^6}|{:*^7}|{:06.2f}|{:,}|{:x}|{:#b}|{:+d}|{:%}|{!r}".format("a", "b", "c", "d", 3.14159, 1234567, 255, 5, 3, 0.25, "q")
"{{}} {:{}}".format("a", 4)
"%s %d %5.1f|%-5s|%05d|%x|%r|%%|%c" % ("a", 3, 2.55, "l", 42, 255, "q", "z")
"%(a)s-%(b)03d" % {"a": 1, "b": 2}
"%s" % name
"%s" % [1, 2]
"%5s|%-5s|%.2s" % ("a", "b", "cde")
"%e %g %G" % (12345.678, 0.00001, 1e20)
"%s and %s"|format("a", 1)
"%(x)s"|format(x=5)
nested.keys()|list ~ nested.values()|list|length ~ nested.get("a").get("z", 5) ~ nested.get("q")
nested.a.items()
{"b": 1}.copy() ~ dict(a=1, b=2) ~ dict({"x": 1}, y=2) ~ dict([("k", 1)])
numbers.index(1) ~ numbers.count(2) ~ (1, 1).count(1)
words|length ~ words|count ~ name|length ~ text|length ~ nested|length ~ missing|length
words|first ~ words|last ~ name|first ~ text|last ~ nested|first
[]|first is undefined
words|join(", ") ~ words|join ~ people|join("/", attribute="name")
words|sort|join(" ") ~ " " ~ words|sort(case_sensitive=true)|join(" ") ~ " " ~ numbers|sort(reverse=true)|join
people|sort(attribute="age,name")|map(attribute="name")|join(",")
people|sort(attribute="age", reverse=true)|map(attribute="name")|list
{"b": 1, "A": 3, "c": 2}|dictsort
{"b": 1, "A": 3, "c": 2}|dictsort(by="value", reverse=true)
{"b": 1, "A": 3}|dictsort(true)
{"b": 1, "A": 3}|items|list
words|unique|list
people|map(attribute="city")|unique|list
words|min ~ words|max ~ numbers|min ~ numbers|max ~ people|max(attribute="age")
numbers|sum ~ people|sum(attribute="age") ~ numbers|sum(start=10)
words|reverse|list
name|reverse
numbers|batch(2)|list
numbers|batch(2, "x")|list
[1, 2, 3, 4, 5]|slice(3)|list
[1, 2, 3, 4, 5]|slice(3, 0)|list
people|selectattr("age", "gt", 26)|map(attribute="name")|join
people|rejectattr("age", "equalto", 30)|map(attribute="name")|list
people|selectattr("missing")|list ~ mixed|select("string")|list ~ mixed|reject("none")|list ~ [0, 1, ""]|select|list
numbers|map("string")|list ~ words|map("upper")|join(",") ~ people|map(attribute="zip", default="-")|list
people|map(attribute="name.0")|list
words|map("replace", "p", "q")|list
numbers|map("default", 3)|list
name|upper ~ name|lower ~ "aB cD"|capitalize ~ blank|trim ~ "xx1xx"|trim("x")
"aXbX"|replace("X", "-") ~ "aXbX"|replace("X", "-", 1) ~ 123|replace(2, "x")
html|e ~ html|escape ~ (html|safe)
"<b>"|safe + "<i>" ~ ("<" + "<i>"|safe) ~ ("%s"|safe % "<") ~ ("<"|e|e) ~ ("<"|e|forceescape)
{"class": "x y", "id": none, "n": 1}|xmlattr
"a\\nb\\n\\nc"|indent(2) ~ "|" ~ "a\\nb"|indent(2, true) ~ "|" ~ "a\\n\\nb"|indent(width=">>", blank=true)
"hello world foo"|truncate(9) ~ "|" ~ "hello world foo bar"|truncate(9, true) ~ "|" ~ "hello world foo"|truncate(11, false, "!", 0)
"hello big world foo"|wordcount
"ab"|center(6) ~ "|"
3.7|int ~ "42"|int ~ "42.9"|int ~ "x"|int ~ "x"|int(-1) ~ "ff"|int(base=16) ~ "0x1A"|int(0, 16) ~ none|int ~ true|int ~ "1_000"|int
"3.5"|float ~ "x"|float ~ "x"|float(1.5) ~ 3|float ~ " 1e3 "|float ~ "inf"|float
2.567|round ~ " " ~ 2.567|round(2) ~ " " ~ 2.5|round ~ " " ~ 3.5|round ~ " " ~ 2.1|round(0, "ceil") ~ " " ~ 2.9|round(method="floor") ~ " " ~ 5|round ~ " " ~ 2.675|round(2) ~ " " ~ 1234.5|round(-2)
negative|abs ~ -2.5|abs
mixed|string ~ none|string
nested.a|attr("items") is callable
name|attr("nope") is undefined
mixed|list ~ name|list ~ nested|list
mixed|tojson
text|tojson ~ text|tojson(ensure_ascii=true)
nested|tojson(indent=2)
nested|tojson(indent=4, sort_keys=true)
{"b": [1, {}], "a": []}|tojson(separators=(",", ":"), sort_keys=true)
{"a": {"b": []}}|tojson(indent=0)
{"a": 1}|tojson(none, "--")
{1: 2, none: 3, true: 4, 1.5: 5}|tojson
"\\"\\\\\\n\\r\\t\\x08\\x0c\\x01\\x7f</script>"|tojson
[1.0, 1e100, 1e-7, 0.1, -0.0, 1e16]|tojson
(1, 2)|tojson
strftime_now("%d %b %Y %H:%M:%S|%j|%A|%%|%f|%z|%Z|%y")
[1, 2] is sameas [1, 2]
missing|list ~ missing|join(",") ~ missing|string ~ missing|upper
"a"|upper|lower|upper
(1, 2)[0] ~ [1, [2, 3]][1][0]
namespace(a=1, b="x").b ~ namespace({"k": 2}).k
cycler("a", "b").next()
"abc"|map("upper")|list
nested|map("upper")|list
5 is not none and 5 in [5]
true ~ True ~ false ~ False ~ none ~ None
{"a": 1}["a"] ~ {"a": {"b": 2}}.a.b
words[n - 6:][0]
[words, numbers][1][0]
(n, x)
[1, 2, 3][missing_index|default(1)]
-n ~ +n ~ -x
- n|abs
"%s"|format(1)|length
range(3)|map("string")|join("+")
loop is defined
"\u0661\u0662".isdigit()
"a\\u2028b"|tojson
"{0!r:>8}".format("x")
1 if 0 else 2 if 0 else 3
(1 if yes) + 1
words|sort(attribute="0")|list
[3, 1.5, true]|sort|list
"abc"[1] ~ "abc"["length"] ~ "abc".length
[{"a": 1}, {"a": none}]|selectattr("a", "none")|list|length
[[1, "b"], [1, "a"]]|sort|list
"x" ~ [1]|first
"a,b"|replace(",", "\\n")|indent(3)
10 ** 3 // 7 % 5
"  lead"|trim|length
""|trim ~ "|"
"A".join([])
missing is sequence ~ missing is iterable ~ missing is mapping ~ missing is string
"a b"|wordcount is eq 2
"<p>a  <b>b</b></p>\\n<!-- x <i> --> &amp; c"|striptags
html|striptags
"a < b & c > d <"|striptags
"&lt;b&gt; &nbsp; &eacute;&hellip; &copy2 &copy; &notin; &not; &apos; &#39;&#x41;&#128;&#0;&#xD800;&#xDFFF;&#xDBFF;&#xE000;&#x1F600; &#1; &unknown; &ampx &AMP &#; &;"|striptags
("<b>x</b>"|safe)|striptags
(("<b>&lt;i&gt;</b>"|safe)|striptags) ~ "<"
"<!-- a"|striptags ~ "|" ~ "x<!---->y"|striptags ~ "|" ~ "<a"|striptags
"a\\u00a0\\u2003b\\tc"|striptags ~ 5|striptags
""|striptags ~ "|" ~ "  "|striptags
people|groupby("age")|list
people|groupby("city")|map("first")|list
people|groupby("city", case_sensitive=true)|map(attribute="grouper")|list
people|groupby("city")|map(attribute="list")|map("length")|list
(people|groupby("city"))[0].list|map(attribute="name")|list
(people|groupby("city"))[0].grouper ~ (people|groupby("age"))|first
people|groupby("none", default="x")|length
[{"a": {"b": 2}}, {"a": {"b": 1}}, {"a": {}}]|groupby("a.b", default=1)|list
[[2, 1], [1, 2], [2, 3]]|groupby(0)|list
[]|groupby("x")
words|groupby(0)|list
["b", "B", "a"]|groupby(0, none, true)|list
people|groupby("age")|tojson
(people|groupby("age"))[0] == (25, [people[1]])
(people|groupby("age"))[0].count(25)
0|filesizeformat ~ " " ~ 1|filesizeformat ~ " " ~ 999|filesizeformat ~ " " ~ 1000|filesizeformat
1023|filesizeformat(true) ~ " " ~ 1024|filesizeformat(binary=true) ~ " " ~ 1048576|filesizeformat(true)
1500|filesizeformat ~ " " ~ 1250|filesizeformat ~ " " ~ 999999|filesizeformat ~ " " ~ 123456789012|filesizeformat
1e27|filesizeformat ~ " " ~ 1e30|filesizeformat(true) ~ " " ~ 1e24|filesizeformat ~ " " ~ 5e23|filesizeformat(true)
"1234567"|filesizeformat ~ " " ~ -5|filesizeformat ~ " " ~ -5000|filesizeformat ~ " " ~ 1.9|filesizeformat ~ " " ~ true|filesizeformat
"a b/c?d=ä&"|urlencode ~ " " ~ 5|urlencode ~ " " ~ none|urlencode
{"a b": "c/d", "e": 1}|urlencode ~ " " ~ [("x", "y z"), ("~", "*")]|urlencode
("a&b"|safe)|urlencode
"""

# Where a loop is: its item, what is beside it, and how many there are.
COUNTS = (
    "{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {{ loop.index }}/{{ loop.length }} {{ loop.index0 }} {{ loop.revindex }} "
    "{{ loop.revindex0 }}{{ ' first' if loop.first }}{{ ' last' if loop.last }}; "
)

TEMPLATES = [
    "Hello {{ name }}!\n",
    "trailing newline kept once\n\n",
    "a\r\nb\rc\n",
    "",
    "{{ name }}\n  {% if yes %}\n  yes\n  {% endif %}\nend",
    "{% for x in numbers %}\n  {{ x }}\n{% endfor %}\nend",
    "a  {%- if yes -%}  b  {%- endif -%}  c",
    "a  {%+ if yes +%}\n  b  {%+ endif %}\n  c",
    "  {{- name -}}  \n  x",
    "x  {#- comment -#}  y",
    "x\n  {# comment #}\n  y",
    "x {# {{ no }} {% if %} #} y",
    "{% raw %}{{ not }} {% if %}{% endraw %}|",
    "a\n  {% raw %}\n  {{ x }}\n  {% endraw %}\n  b",
    "a {%- raw -%}  {{ x }}  {%- endraw -%} b",
    "{{ '{{' }} {{ '%}' }} {{ {'a': {'b': 1}}['a'] }}",
    "{% if n > 10 %}big{% elif n > 5 %}mid{% else %}small{% endif %}",
    "{% if no %}a{% elif no %}b{% endif %}|",
    "{% for x in [] %}x{% else %}none{% endfor %}",
    "{% for x in words %}{{ loop.index }}/{{ loop.length }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ x }} {% endfor %}",
    "{% for x in words %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}",
    "{% for x in words %}{{ loop.cycle('a', 'b') }}{{ loop.changed(x|length) }} {% endfor %}",
    "{% for k, v in nested.a.items() %}{{ k }}={{ v }}{% endfor %}",
    "{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for x in numbers if x > 1 %}{{ loop.index }}:{{ x }} {% else %}none{% endfor %}",
    "{% for x in numbers if x > 9 %}{{ x }}{% else %}none{% endfor %}",
    # The filter drops the first, the last, both, and all but one item: the counts are of what is left.
    "{% for x in [1, 2, 3, 4] if x != 1 %}" + COUNTS + "{% endfor %}",
    "{% for x in [1, 2, 3, 4] if x != 4 %}" + COUNTS + "{% endfor %}",
    "{% for x in [1, 2, 3, 4, 5] if x % 2 == 0 %}" + COUNTS + "{% endfor %}",
    "{% for x in [1, 2, 3] if x == 2 %}" + COUNTS + "{% endfor %}",
    "{% for x in [1, 2, 3, 4] if x != 4 %}{% for y in [5, 6, 7] if y != x + 4 %}" + COUNTS + "{{ y }}{{ loop.cycle('a', 'b') }}{% endfor %}"
    "|" + COUNTS + "{% endfor %}",
    "{% for x in [1, 2, 3] if x > 1 recursive %}" + COUNTS + "{% if loop.depth < 2 %}({{ loop([0, x, 9, 1]) }}){% endif %}{% endfor %}",
    "{% for m in people if m.age > 26 %}{{ m.name }}{% if not loop.last %}, {% endif %}{% endfor %}",
    "{% for x in range(10) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in [1] %}{% break %}{% else %}else after break{% endfor %}",
    "{% for x in [1, 2] %}{% continue %}{% else %}else after continue{% endfor %}",
    "{% for x in [1, 2] recursive %}{{ loop.depth }}{{ x }}{% if loop.depth < 3 %}({{ loop([x * 10]) }}){% endif %}{% endfor %}",
    "{% for x in 'ab' %}{% for y in 'cd' %}{{ loop.index }}{{ x }}{{ y }}{% endfor %}{{ loop.index }}{% endfor %}",
    "{% for x in numbers %}{% set last = x %}{% endfor %}{{ last is defined }}",
    "{% set v = 1 %}{% for x in numbers %}{{ v }}{% set v = x %}{{ v }} {% endfor %}{{ v }}",
    "{% set ns = namespace(n=0, found=false) %}{% for x in numbers %}{% set ns.n = ns.n + x %}{% endfor %}{{ ns.n }}{{ ns.found }}{{ ns.other is defined }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, d) = [3, 4] %}{{ c }}{{ d }}{% set t = 1, %}{{ t }}",
    "{% set block %}x{{ n }}{% endset %}[{{ block }}]{% set up | upper | replace('X', 'Z') %}ax{% endset %}{{ up }}",
    "{% set ns = namespace() %}{% set ns.x %}text{% endset %}{{ ns.x }}",
    "{% filter upper %}a{{ name }}{% endfilter %}{% filter replace('a', 'b')|trim %} aaa {% endfilter %}",
    "{% with a = 1, b = n %}{{ a }}{{ b }}{% set c = 5 %}{% endwith %}{{ a is defined }}{{ c is defined }}",
    "{% with %}{% set z = 1 %}{{ z }}{% endwith %}{{ z is defined }}",
    "{% macro m(a, b='B', c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}|{{ m(1, 2) }}|{{ m(b=3, a=4) }}|{{ m() }}",
    "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}",
    "{% macro m(a) %}<{{ caller() }}>{% endmacro %}{% call m(1) %}in{{ n }}{% endcall %}",
    "{% macro m(xs) %}{% for x in xs %}{{ caller(x, loop.index) }}{% endfor %}{% endmacro %}{% call(v, i) m(words) %}{{ i }}{{ v }} {% endcall %}",
    "{% macro fact(n) %}{{ n if n <= 1 else n * fact(n - 1)|int }}{% endmacro %}{{ fact(10) }}",
    "{% macro walk(v) %}{% if v is mapping %}{% for k, w in v.items() %}{{ k }}:{{ walk(w) }};{% endfor %}{% else %}{{ v }}{% endif %}{% endmacro %}{{ walk(nested) }}",
    "{% macro m() %}{{ later }}{% endmacro %}{% set later = 'set' %}{{ m() }}",
    "{% set outer = 1 %}{% macro m() %}{% set outer = 2 %}{{ outer }}{% endmacro %}{{ m() }}{{ outer }}",
    "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}{{ a.name }}",
    "{% macro m(a) %}{% if a %}{{ a }}{% endif %}{% endmacro %}{{ m(*[5]) }}{{ m(**{'a': 6}) }}",
    "{{ name }}{% set name = 'x' %}{{ name }}",
    "{% if no %}{% set name = 'x' %}{% endif %}{{ name }}",
    "{% if yes %}{% set name = 'x' %}{% else %}{% set name = 'y' %}{% endif %}{{ name }}",
    "{% for x in [1] %}{{ name }}{% endfor %}{% set name = 'later' %}{{ name }}",
    "{% for x in [1] %}{% set name = 'in' %}{{ name }}{% endfor %}{{ name }}",
    "{% for name in [1] %}{{ name }}{% endfor %}{{ name }}",
    "{% macro m() %}{{ name }}{% set name = 'in' %}{{ name }}{% endmacro %}{{ m() }}",
    "{% macro m() %}{% set name = 'in' %}{{ name }}{% endmacro %}{{ m() }}{{ name }}",
    "{% set g = words|map('upper') %}{{ g|list }}{{ g|list }}{{ g is iterable }}",
    "{% set g = words|select %}{{ g|first }}{{ g|first }}{{ g|list }}",
    "{% generation %}inside {{ n }}{% endgeneration %}\n after",
    "{% for x in [1, 2] %}{%- generation %}\n{{ x }}{% set y = x %}{% endgeneration -%}\n{% endfor %}{{ y is defined }}",
    "{% print n, name %}",
    "{% set j = joiner('; ') %}{% for x in numbers %}{{ j() }}{{ x }}{% endfor %}",
    "{% set c = cycler(1, 2, 3) %}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.reset() }}{{ c.next() }}",
    "{{ x is defined and x }}{{ nope is defined and nope.x }}",
    "{%if yes%}tight{%endif%}{{n}}{{-n-}}",
    "{{ 1 }}{% if yes: %}colon{% endif %}",
    "{% for p in people|sort(attribute='name') %}{{ p.name }}{% if not loop.last %}, {% endif %}{% endfor %}",
    "{% set items = [] %}{% for x in numbers %}{% set items = items + [x] %}{% endfor %}{{ items }}",
    "{% set ns = namespace(items=[]) %}{% for x in numbers %}{% set ns.items = ns.items + [x] %}{% endfor %}{{ ns.items }}",
    "{% set s = 'a' %}{% for i in range(5) %}{% set s = s + 'b' %}{{ s }} {% endfor %}{{ s }}",
    "{% set ns = namespace(s='') %}{% for i in range(300) %}{% set ns.s = ns.s + 'xy' %}{% set t = ns.s + '!' %}{% endfor %}{{ ns.s|length }}{{ ns.s[-3:] }}",
    "{% for m in messages|default([]) %}{{ m }}{% endfor %}done",
    "{{ '%s' % none }}{{ [none] }}{{ {'a': none} }}",
    "{% if messages is defined and messages[0].role == 'x' %}a{% endif %}b",
    "{%- for x in numbers -%}\n  {{- x }},\n{%- endfor -%}\n\n end",
    "line\n\t {%- if yes %}\n\tindented\n\t{%- endif %}\nlast\n",
    "  {% set a = 1 %}  \n  {% set b = 2 %}x  {% set c = 3 %}\ny",
    "{{ 'a' if loop is defined else 'b' }}",
    "{% for a in [1] %}{% for b in [2] %}{% set c = a + b %}{{ c }}{% endfor %}{{ c is defined }}{% endfor %}",
    "{% macro m(loop_items) %}{% for loop_item in loop_items %}{{ loop.index }}{% endfor %}{% endmacro %}{% for x in [1, 2] %}{{ m([1, 2, 3]) }}-{% endfor %}",
    "{% set x = {'a': [1, 2, {'b': 'c'}]} %}{{ x.a[2].b }}{{ x['a'][0] }}",
]

# These fail, on the line that jinja2 names.
ERRORS = [
    "{{ raise_exception('No ' ~ name) }}",
    "one\ntwo\n{{ missing.attribute }}",
    "\n{{ nothing.x.y }}",
    "{{ missing() }}", "{{ missing + 1 }}", "{{ missing[0] }}", "{{ -missing }}", "{{ missing < 1 }}", "{{ missing|int }}",
    "{{ 'a' + 1 }}", "{{ 1 + 'a' }}", "{{ 1 < 'a' }}", "{{ [] < {} }}", "{{ 1 in 5 }}", "{{ 1 in 'a' }}", "{{ {}[[]] }}", "{{ {[]: 1} }}",
    "{{ 1 / 0 }}", "{{ 1 // 0 }}", "{{ 1 % 0 }}", "{{ 1.0 / 0 }}", "{{ nothing|length }}", "{{ 5|length }}", "{{ 5|first }}", "{{ nothing|list }}",
    "{% for x in 5 %}{% endfor %}", "{% for x in nothing %}{% endfor %}", "{% for a, b in [1] %}{% endfor %}", "{% for a, b in [[1, 2, 3]] %}{% endfor %}",
    "{{ name() }}", "{{ name.upper(1) }}", "{{ name.nope() }}", "{{ words.append(1) }}", "{{ nested.update({}) }}", "{{ words.sort() }}", "{{ name.__class__.__name__ }}",
    "{{ ''|nope }}", "{{ '' is nope }}", "{% if yes %}\n{{ ''|nope }}{% endif %}",
    "{{ missing|tojson }}", "{{ range|tojson }}", "{{ numbers|map('upper')|tojson }}", "{{ {(1, 2): 3}|tojson }}",
    "{{ range(1000000) }}", "{{ range(1, 2, 0) }}", "{{ range() }}", "{{ range('a') }}",
    "{{ 'a'.index('b') }}", "{{ 'a'.split('') }}", "{{ ','.join([1]) }}", "{{ '%d' % 'a' }}", "{{ '%s %s' % 1 }}", "{{ '%s' % (1, 2) }}", "{{ '{}'.format() }}",
    "{{ '{x}'.format(1) }}", "{{ words[1:'a'] }}", "{{ words[::0] }}", "{{ nested[1:] }}", "{{ [1, 'a']|sort }}", "{{ [[]]|unique|list }}", "{{ ['a']|sum }}",
    "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(b=1) }}", "{% macro m() %}{% endmacro %}{% call m() %}{% endcall %}",
    "{% macro m() %}{{ caller() }}{% endmacro %}\n{{ m() }}",
    "{% set x.y = 1 %}", "{% set nested.y = 1 %}", "{% set ns = namespace(_x=1) %}", "{% set ns = namespace() %}{% set ns._x = 1 %}",
    "{{ 'a'|replace('a') }}", "{{ 'a'|upper(1) }}", "{{ [1]|join(',', 1, 2, 3) }}", "{{ 'abc'|truncate(1) }}", "{{ 1|indent }}", "{{ 'x'|round }}",
    "{{ [1]|map('nope')|list }}", "{{ [1]|select('nope')|list }}", "{{ [1]|slice(0)|list }}", "{{ nested|dictsort(by='x') }}",
    "{{ (1 if no).x }}", "{{ [].x.y }}", "{{ loop.index }}", "{% for x in [1] %}{{ loop(1) }}{% endfor %}", "{{ cycler() }}", "{{ dict(1) }}",
    # what is not a template
    "{{", "{{ }}", "{% %}", "{% if %}", "{% if yes %}", "a\n\n{% for x in numbers %}\n", "{% endif %}", "{% if yes %}{% endfor %}", "{% nope %}", "{{ 1 + }}",
    "{{ (1 }}", "{{ [1, }}", "{{ 1) }}", "{{ (1] }}", "{{ {1} }}", "{{ a b }}", "{{ a. }}", "{{ 'unclosed }}", "{# unclosed", "{% raw %}unclosed", "{{ a ! b }}", "{{ $ }}",
    "{% set %}", "{% set 1 = 2 %}", "{% set a + b = 2 %}", "{% for x %}", "{% for in y %}{% endfor %}", "{% for x.y in z %}{% endfor %}", "{% macro %}", "{% macro m(a=1, b) %}{% endmacro %}",
    "{% macro m(1) %}{% endmacro %}", "{% call 1 %}{% endcall %}", "{% filter %}{% endfilter %}", "{{ f(a=1, 2) }}", "{{ f(**a, b) }}", "{{ f(,) }}", "{{ a is b is c }}", "{{ 1 is }}",
    "{{ a | }}", "{{ a if }}", "{{ not }}", "{% break %}", "{% continue %}", "{% if yes %}{% break %}{% endif %}", "{% else %}", "{{ '\\xq' }}", "{{ 01 }}", "{% with a %}{% endwith %}",
    "{% generation %}", "{% do 1 %}", "{% for x in [1] %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}", "{{ a[1 }}", "{% if yes %}{% else %}{% else %}{% endif %}", "{{ a.(b) }}", "{{ {'a' 1} }}",
    "{{ none|filesizeformat }}",
    "{{ 'x'|filesizeformat }}",
    "{{ people|groupby }}",
    "{{ [[1], ['a']]|groupby(0) }}",
    "{{ 5|groupby('a') }}",
    "{{ [1]|urlencode }}",
]


def line_of(error):
    if isinstance(error, jinja2.TemplateSyntaxError):
        return error.lineno
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == "<template>"]
    return frames[-1].lineno if frames else 0


def run(template):
    case = {"template": template}
    try:
        case["output"] = chat_template_utils._compile_jinja_template(template).render(**DATA)
    except Exception as error:  # whatever it is
        case["line"] = line_of(error)
    return case


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    lines = EXPRESSIONS.strip("\n").replace("\\\n", "\\\0").split("\n")
    cases = [run("{{ " + line.replace("\0", "\n") + " }}") for line in lines]
    cases += [run(template) for template in TEMPLATES]
    cases += [run(template) for template in jinja_edges.templates()]
    failed = [c["template"] for c in cases if "line" in c]
    errors = [run(template) for template in ERRORS + jinja_edges.FAILING]
    fine = [c["template"] for c in errors if "output" in c]
    for template in failed:
        print(f"fails: {template}", file=sys.stderr)
    for template in fine:
        print(f"does not fail: {template}", file=sys.stderr)
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump({"variables": DATA, "cases": cases + errors}, file, ensure_ascii=True, indent=0)
        file.write("\n")


main()
