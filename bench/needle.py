#!/usr/bin/env python3
"""Facts hidden in a long text, and how many are found again: what a smaller KV cache loses.

    needle.py -m MODEL --text FILE [--cli PATH] [--tokens 8192] [--needles 24] [--seed 1] [FLAGS …]

Each FLAGS is one argument with flags of akunu-cli, "" for none: needle.py … "" "-ctk q8_0 -ctv q8_0" "--kv-keep 1024".
The first --tokens tokens of FILE get one sentence per needle, spread evenly: "The access code of the harbor in Oslo
is 48213." A run of akunu-cli asks for one of them, behind the text, greedily. The answer counts if it has the number.
The text's keys and values come from a prompt cache in a temporary folder, which a run without --kv-keep fills, so a
question costs seconds. Needs nothing but Python.
"""
import argparse
import random
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CITIES = """Lisbon Oslo Vienna Prague Dublin Athens Warsaw Madrid Rome Paris Berlin Geneva Naples Porto Seville Krakow
Zagreb Riga Tallinn Vilnius Sofia Bergen Malmo Turku Lyon Basel Ghent Bremen Leipzig Split Kaunas Varna""".split()
FACT = " The access code of the harbor in {} is {}."
QUESTION = "\n\nWhat is the access code of the harbor in {}? Answer with the number alone."


def run(arguments, text=None):
    done = subprocess.run(arguments, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(map(str, arguments))}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def count_tokens(o, text):
    return len(run([o.cli, "tokenize", "-m", o.model, "--no-bos", "--ids", "-f", "-"], text).split())


def cut_text(o):
    """Paragraphs of the file, to --tokens tokens with the facts."""
    paragraphs = Path(o.text).read_text(encoding="utf-8").split("\n\n")
    facts = count_tokens(o, "".join(FACT.format(city, 12345) for city in CITIES[: o.needles]))
    wanted = o.tokens - facts
    low, high = o.needles, len(paragraphs)
    if count_tokens(o, "\n\n".join(paragraphs)) < wanted:
        sys.exit(f"{o.text} has fewer than {wanted} tokens")
    while low < high:  # the most that fit
        middle = (low + high + 1) // 2
        if count_tokens(o, "\n\n".join(paragraphs[:middle])) <= wanted:
            low = middle
        else:
            high = middle - 1
    return paragraphs[:low]


def hide(o, paragraphs):
    """The text with its facts, and the facts in order of depth."""
    rng = random.Random(o.seed)
    facts = [(city, rng.randrange(10000, 100000)) for city in rng.sample(CITIES, o.needles)]
    hidden = list(paragraphs)
    for i, fact in enumerate(facts):
        hidden[int((i + 0.5) * len(paragraphs) / o.needles)] += FACT.format(*fact)
    return "\n\n".join(hidden), facts


def ask(o, folder, text, city, flags, n):
    kinds = [a for i, a in enumerate(flags) if a in ("-ctk", "-ctv") or flags[i - 1] in ("-ctk", "-ctv")]
    cache = Path(folder) / ("cache" + "".join(kinds))
    prompt = Path(folder) / "prompt"
    prompt.write_text(text + QUESTION.format(city), encoding="utf-8")
    command = [o.cli, "run", "-m", o.model, "-f", prompt, "--temp", "0", "--no-display-prompt", "-c", o.tokens + 512,
               "--prompt-cache", cache]
    if not cache.exists():
        run([*map(str, command), "-n", "1", *kinds])
    return run([*map(str, command), "-n", str(n), *flags])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("--text", required=True)
    parser.add_argument("--cli", default="akunu-cli")
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--needles", type=int, default=24, choices=range(1, len(CITIES) + 1), metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("flags", nargs="*", default=[""])
    o = parser.parse_args()
    text, facts = hide(o, cut_text(o))
    with tempfile.TemporaryDirectory() as folder:
        for flags in o.flags:
            started = time.monotonic()
            found = "".join(
                "x" if str(number) in ask(o, folder, text, city, shlex.split(flags), 12) else "." for city, number in facts
            )
            seconds = time.monotonic() - started
            print(f"{found.count('x'):3} of {len(facts)}  {found}  {flags or 'all of the cache'}  ({seconds:.0f} s)", flush=True)


main()
