#!/usr/bin/env python3
"""Schemas and texts with what the Python package jsonschema says of them.

usage: grammar.py write FILE              makes tests/data/grammar/schemas.json
       grammar.py fuzz BATCH N [SEED]     tries N random schemas with tests/text/grammar/grammar_batch of a build

A case is {"schema": …, "texts": [[TEXT, VALID], …]}. The oracle is jsonschema 4.26
(Draft202012Validator with a format checker), run on what Python's json reads of a text.
`fuzz` wants of the form for reading that it accepts what is valid and nothing else, and of
the form for writing that it accepts nothing that is not valid."""
import json
import random
import subprocess
import sys

import jsonschema

WORDS = ["", "a", "b", "ab", "abc", "aab", "foo", "bar", "x-1", "0", "12", "007", "é", "日本", "😀", 'q"q', "b\\s", "new\nline", "\t", "A1", "zz"]
PATTERNS = ["^a", "b$", "^[a-c]+$", "^x-[0-9]+$", "^(foo|bar)?$", "o{2}", "^.{2,4}$", "^[^a]*$", "a.*b|^0", "^a{1,3}b*$", "[0-9]", "^$"]
FORMATS = ["date", "ipv4", "uuid"]
FORMATTED = ["2024-02-29", "2023-02-29", "2023-13-01", "1999-12-31", "2000-02-29", "1900-02-29", "127.0.0.1", "256.1.1.1", "1.2.3",
             "01.2.3.4", "123e4567-e89b-12d3-a456-426614174000", "123e4567e89b12d3a456426614174000", "2024-2-29"]
NUMBERS = [0, 1, -1, 2, 3, 5, 7, 9, 10, 11, 19, 20, 21, 99, 100, 101, -5, -10, -99, 1.5, -1.5, 0.5, 0.25, -0.25, 2.0, 9.99, 10.01, 3.14, 1234567890123]
NAMES = ["a", "b", "c", "ab", "foo", "bar", "x-1", "é", 'q"q']


def scalar(r):
    return r.choice([r.choice(WORDS), r.choice(NUMBERS), r.choice([True, False, None]), r.choice(FORMATTED), r.randint(-30, 130)])


def value(r, depth=0):
    k = r.random()
    if depth > 2 or k < 0.6:
        return scalar(r)
    if k < 0.8:
        return [value(r, depth + 1) for _ in range(r.randint(0, 3))]
    return {r.choice(NAMES): value(r, depth + 1) for _ in range(r.randint(0, 3))}


def bounds(r, low, high, values):
    out = {}
    if r.random() < 0.6:
        out[low] = r.choice(values)
    if r.random() < 0.6:
        out[high] = r.choice(values)
    return out


def number_schema(r):
    s = {"type": r.choice(["integer", "number"])}
    if r.random() < 0.7:
        s |= bounds(r, r.choice(["minimum", "exclusiveMinimum"]), r.choice(["maximum", "exclusiveMaximum"]), NUMBERS)
    if r.random() < 0.2:
        s["multipleOf"] = r.choice([1, 2, 3, 5, 10, 7])
    return s


def string_schema(r):
    s = {"type": "string"}
    k = r.random()
    if k < 0.35:
        s |= bounds(r, "minLength", "maxLength", [0, 1, 2, 3, 4])
    if 0.2 < k < 0.6:
        s["pattern"] = r.choice(PATTERNS)
    if k > 0.85:
        s["format"] = r.choice(FORMATS)
    return s


def array_schema(r, depth):
    s = {"type": "array"}
    if r.random() < 0.4:
        s["prefixItems"] = [schema(r, depth + 1) for _ in range(r.randint(1, 2))]
    if r.random() < 0.7:
        s["items"] = schema(r, depth + 1) if r.random() < 0.85 else r.choice([True, False])
    if r.random() < 0.5:
        s |= bounds(r, "minItems", "maxItems", [0, 1, 2, 3])
    if r.random() < 0.25:
        s["contains"] = schema(r, depth + 1)
        s |= bounds(r, "minContains", "maxContains", [0, 1, 2]) if r.random() < 0.5 else {}
    if r.random() < 0.12:
        s["unevaluatedItems"] = r.choice([False, False, schema(r, depth + 1)])
    return s


def object_schema(r, depth):
    s = {"type": "object"}
    names = r.sample(NAMES, r.randint(0, 4))
    if names and r.random() < 0.9:
        s["properties"] = {n: schema(r, depth + 1) for n in names}
    if r.random() < 0.6:
        s["required"] = r.sample(NAMES if r.random() < 0.2 else names or NAMES[:2], r.randint(0, min(2, len(names))))
    k = r.random()
    if k < 0.4:
        s["additionalProperties"] = False
    elif k < 0.6:
        s["additionalProperties"] = schema(r, depth + 1)
    if r.random() < 0.25:
        s["patternProperties"] = {r.choice(PATTERNS): schema(r, depth + 1) for _ in range(r.randint(1, 2))}
    if r.random() < 0.15:
        s["propertyNames"] = r.choice([{"pattern": r.choice(PATTERNS)}, {"maxLength": 2}, {"enum": r.sample(NAMES, 3)}])
    if r.random() < 0.3:
        s |= bounds(r, "minProperties", "maxProperties", [0, 1, 2, 3])
    if r.random() < 0.15:
        s["dependentRequired"] = {r.choice(NAMES): [r.choice(NAMES)]}
    if r.random() < 0.1:
        s["dependentSchemas"] = {r.choice(NAMES): schema(r, depth + 1)}
    if r.random() < 0.15:
        s["unevaluatedProperties"] = r.choice([False, False, schema(r, depth + 1)])
    return s


def schema(r, depth=0):
    k = r.random()
    if depth > 2:
        return r.choice([number_schema, string_schema])(r) if k < 0.8 else r.choice([{}, True, False, {"enum": [scalar(r), scalar(r)]}])
    if k < 0.15:
        return number_schema(r)
    if k < 0.30:
        return string_schema(r)
    if k < 0.42:
        return array_schema(r, depth)
    if k < 0.62:
        return object_schema(r, depth)
    if k < 0.68:
        s = {"enum": [value(r) for _ in range(r.randint(1, 4))]}
        return s if r.random() < 0.6 else s | r.choice([number_schema, string_schema])(r)
    if k < 0.71:
        return {"const": value(r)}
    if k < 0.74:
        return {"not": schema(r, depth + 1)} | (schema_object(r, depth) if r.random() < 0.5 else {})
    if k < 0.77:
        branches = {b: schema(r, depth + 1) for b in ("then", "else") if r.random() < 0.8}
        return {"if": schema(r, depth + 1)} | branches | (object_schema(r, depth) if r.random() < 0.4 else {})
    if k < 0.82:
        return {"anyOf": [schema(r, depth + 1) for _ in range(r.randint(1, 3))]} | (schema_object(r, depth) if r.random() < 0.4 else {})
    if k < 0.86:
        return {"oneOf": [schema(r, depth + 1) for _ in range(r.randint(1, 3))]}
    if k < 0.92:
        return {"allOf": [schema(r, depth + 1) for _ in range(r.randint(1, 3))]} | (schema_object(r, depth) if r.random() < 0.4 else {})
    if k < 0.96:
        return {"$ref": r.choice(["#/$defs/one", "#/$defs/two"])}
    return {"type": r.sample(["null", "boolean", "integer", "number", "string", "array", "object"], r.randint(1, 3))}


def schema_object(r, depth):
    return r.choice([number_schema, string_schema])(r) if r.random() < 0.5 else object_schema(r, depth + 1)


def whole(r):
    s = schema(r)
    if not isinstance(s, dict):
        s = {"allOf": [s]}
    return s | {"$defs": {"one": schema(r, 1), "two": schema(r, 1)}}


def fitting(r, s, root, depth=0):
    """A value that has a fair chance to be valid."""
    if r.random() < 0.12 or depth > 6 or not isinstance(s, dict):
        return value(r)
    if "$ref" in s:
        return fitting(r, root["$defs"][s["$ref"].rsplit("/", 1)[1]], root, depth + 1)
    if "if" in s and r.random() < 0.8:
        return fitting(r, s.get(r.choice(["if", "then", "else"]), True), root, depth + 1)
    for k in ("anyOf", "oneOf", "allOf"):
        if k in s and r.random() < 0.8:
            picked = [fitting(r, x, root, depth + 1) for x in s[k]]
            if k == "allOf" and all(isinstance(p, dict) for p in picked):
                return {n: v for p in picked for n, v in p.items()}
            return r.choice(picked)
    if "const" in s:
        return s["const"]
    if "enum" in s:
        return r.choice(s["enum"])
    t = s.get("type")
    t = r.choice(t) if isinstance(t, list) else t
    if t in ("integer", "number"):
        near = [v for k in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum") if k in s for v in (s[k], s[k] + 1, s[k] - 1, s[k] + 0.5, s[k] * 10)]
        near += [s.get("multipleOf", 1) * r.randint(-5, 20)]
        v = r.choice(near) if r.random() < 0.8 else r.choice(NUMBERS)
        return round(v, 6)
    if t == "string":
        if "format" in s:
            return r.choice(FORMATTED)
        return r.choice(WORDS) if r.random() < 0.6 else "".join(r.choice("ab0x-1oé") for _ in range(r.randint(0, 5)))
    if t == "array":
        n = r.randint(0, 4)
        prefix = s.get("prefixItems", [])
        if "contains" in s and r.random() < 0.7:
            return [fitting(r, r.choice([s["contains"], prefix[i] if i < len(prefix) else s.get("items", True)]), root, depth + 1) for i in range(n)]
        return [fitting(r, prefix[i] if i < len(prefix) else s.get("items", True), root, depth + 1) for i in range(n)]
    if t == "object":
        out = {}
        for n, p in s.get("properties", {}).items():
            if r.random() < 0.7:
                out[n] = fitting(r, p, root, depth + 1)
        for n in s.get("required", []):
            if n not in out and r.random() < 0.8:
                out[n] = value(r)
        if r.random() < 0.4:
            more = s.get("additionalProperties", True)
            out[r.choice(NAMES)] = fitting(r, more, root, depth + 1)
        items = list(out.items())
        r.shuffle(items)
        return dict(items)
    return value(r)


def text(r, v):
    return json.dumps(v, ensure_ascii=r.random() < 0.5, separators=r.choice([(",", ":"), (", ", ": "), (" , ", " : ")]), indent=r.choice([None, None, None, 1]))


CHECKER = jsonschema.FormatChecker(["date", "ipv4", "uuid"])


def cases(r, n):
    out = []
    while len(out) < n:
        s = whole(r)
        try:
            validator = jsonschema.Draft202012Validator(s, format_checker=CHECKER)
            texts = {text(r, fitting(r, s, s)) for _ in range(14)}
            tests = [[t, validator.is_valid(json.loads(t))] for t in sorted(texts)]
        except KeyboardInterrupt:
            raise
        except BaseException:  # endless recursion, which a dependency turns into a panic
            continue
        out.append({"schema": s, "texts": tests})
    return out


def ask(batch, list_of_cases, writing):
    lines = "".join(json.dumps({"schema": c["schema"], "writing": writing, "texts": [t for t, _ in c["texts"]]}) + "\n" for c in list_of_cases)
    return [json.loads(x) for x in subprocess.run([batch], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()]


def fuzz(batch, n, seed):
    r = random.Random(seed)
    made = cases(r, n)
    counts = dict.fromkeys(["refused", "right", "too few", "WRONG", "written", "WRONG written"], 0)
    for writing in (False, True):
        for case, answer in zip(made, ask(batch, made, writing), strict=True):
            if "error" in answer:
                counts["refused"] += not writing
                if answer["status"] not in ("unsupported",):
                    print(answer, json.dumps(case["schema"]))
                continue
            for (t, valid), accepted in zip(case["texts"], answer["accept"], strict=True):
                if writing:
                    kind = "WRONG written" if accepted and not valid else "written" if accepted else None
                else:
                    kind = "right" if accepted == valid else "WRONG" if accepted else "too few"
                if kind:
                    counts[kind] += 1
                if kind in ("WRONG", "WRONG written", "too few"):
                    print(kind, repr(t), json.dumps(case["schema"], ensure_ascii=False))
    print(counts)
    return 1 if counts["WRONG"] or counts["WRONG written"] else 0


def write(path):
    r = random.Random(7)
    kept = []
    for c in cases(r, 2000):
        valid = sum(v for _, v in c["texts"])
        if 3 <= valid <= len(c["texts"]) - 2 and len(json.dumps(c)) < 1800:
            kept.append(c)
        if len(kept) == 150:
            break
    with open(path, "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(c, ensure_ascii=False) for c in kept) + "\n]\n")


if sys.argv[1] == "write":
    write(sys.argv[2])
else:
    sys.exit(fuzz(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 1))
