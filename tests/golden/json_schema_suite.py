#!/usr/bin/env python3
"""Runs the JSON-Schema-Test-Suite through akunu's grammars.

usage: json_schema_suite.py BATCH FOLDER [-v]

BATCH is the program tests/text/grammar/grammar_batch of a build, FOLDER a folder of the suite's files
(tests/draft2020-12 of https://github.com/json-schema-org/JSON-Schema-Test-Suite). Each test
is a schema and an instance that is valid or not. Counted by file:

  right     the grammar accepts what is valid and nothing else
  refused   the schema has a keyword that is refused by name
  too few   a valid instance is not accepted (-v lists them)
  WRONG     an invalid instance is accepted: there must be none

Exit status 1 where one is wrong."""
import json
import pathlib
import subprocess
import sys


def main():
    batch, folder, verbose = sys.argv[1], pathlib.Path(sys.argv[2]), "-v" in sys.argv
    cases = []
    for path in sorted(folder.rglob("*.json")):
        for group in json.loads(path.read_text()):
            cases.append((str(path.relative_to(folder).with_suffix("")), group))
    lines = "".join(
        json.dumps({"schema": group["schema"], "texts": [json.dumps(t["data"]) for t in group["tests"]]}) + "\n" for _, group in cases
    )
    out = subprocess.run([batch], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    counts, why = {}, {}
    for (name, group), line in zip(cases, out, strict=True):
        answer = json.loads(line)
        c = counts.setdefault(name, dict.fromkeys(["right", "refused", "too few", "WRONG"], 0))
        if "error" in answer:
            c["refused"] += len(group["tests"])
            why.setdefault(name, set()).add(f"{answer['status']}: {answer['error']}")
            continue
        for test, accepted in zip(group["tests"], answer["accept"], strict=True):
            kind = "right" if accepted == test["valid"] else "WRONG" if accepted else "too few"
            c[kind] += 1
            if kind == "WRONG" or (verbose and kind == "too few"):
                print(f"{kind}: {name}: {group['description']}: {test['description']}: {json.dumps(test['data'])[:80]}")
    total = dict.fromkeys(["right", "refused", "too few", "WRONG"], 0)
    print(f"{'':34}" + "".join(f"{k:>9}" for k in total))
    for name, c in counts.items():
        print(f"{name:34}" + "".join(f"{n:>9}" for n in c.values()))
        for k, n in c.items():
            total[k] += n
        if verbose:
            for reason in sorted(why.get(name, ())):
                print(f"    {reason}")
    print(f"{'together':34}" + "".join(f"{n:>9}" for n in total.values()))
    return 1 if total["WRONG"] else 0


sys.exit(main())
