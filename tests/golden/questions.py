#!/usr/bin/env python3
"""The prompts and log-likelihoods that tests/apps/cli/test_quality.sh expects of eval.

usage: questions.py LM_EVAL QUESTIONS.jsonl PROMPTS.jsonl [MODELS]

LM_EVAL: the folder lm_eval of lm-evaluation-harness 0.4.13, whose task files
say how a row becomes a context and its continuations (needs jinja2, yaml).
PROMPTS.jsonl gets the lines of `akunu-cli eval --save` without the
log-likelihoods and the counts of tokens. Rows of our own forms are written as
ARC's, or with the context as it is.

MODELS: tests/data/models; prints the log-likelihoods of the last question,
whose texts are the beginning of the fixture llama-f32 (transformers, float32).
"""
import ast
import importlib.util
import json
import re
import sys
import types
from pathlib import Path

import yaml
from jinja2 import BaseLoader, Environment, StrictUndefined

tasks = Path(sys.argv[1]) / "tasks"
environment = Environment(loader=BaseLoader, undefined=StrictUndefined, keep_trailing_newline=True)
sys.modules["datasets"] = types.SimpleNamespace(Dataset=object)  # an annotation in hellaswag/utils.py


def task(path):
    return yaml.safe_load(re.sub(r"!function \S+", "function", (tasks / path).read_text()))


def module(path):
    spec = importlib.util.spec_from_file_location("task", tasks / path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def render(text, row):
    return environment.from_string(text).render(**row) if "{{" in text else row[text]


class Rows(list):
    def map(self, change):
        return [dict(row, **change(row)) for row in self]


def by_task(config, row):
    choices = render(config["doc_to_choice"], row)
    choices = ast.literal_eval(choices) if isinstance(choices, str) else choices
    return [(render(config["doc_to_text"], row), choice) for choice in choices], int(render(config["doc_to_target"], row))


def question(row):
    """The form, pairs of context and choice, and the index of the right one."""
    if "endings" in row:
        (row,) = module("hellaswag/utils.py").process_docs(Rows([row]))
        return "HellaSwag", *by_task(task("hellaswag/hellaswag.yaml"), row)
    if "goal" in row:
        return "PIQA", *by_task(task("piqa/piqa.yaml"), row)
    if "sentence" in row:
        functions = module("winogrande/preprocess_winogrande.py")
        target = functions.doc_to_target(row)
        return "WinoGrande", [(context, target) for context in functions.doc_to_choice(row)], functions.doc_to_text(row)
    if "question_stem" in row:
        return "OpenBookQA", *by_task(task("openbookqa/openbookqa.yaml"), row)
    if "answerKey" in row:
        return "ARC", *by_task(task("arc/arc_easy.yaml"), row)
    if "subject" in row:
        config = task("mmlu/default/_default_template_yaml")
        about = task("mmlu/default/mmlu_%s.yaml" % row["subject"])["description"]
        context = about + render(config["doc_to_text"], row)
        return "MMLU", [(context, letter) for letter in config["doc_to_choice"]], row["answer"]
    if "context" in row:
        return "plain", [(row["context"], choice) for choice in row["choices"]], row["answer"]
    return "plain", [("Question: %s\nAnswer:" % row["question"], choice) for choice in row["choices"]], row["answer"]


lines = Path(sys.argv[2]).read_text().splitlines()
with open(sys.argv[3], "w") as out:
    for number, line in enumerate(lines, 1):
        form, pairs, answer = question(json.loads(line))
        choices = [{"context": context, "text": " " + choice} for context, choice in pairs]
        result = {"form": form, "line": number, "answer": answer, "choices": choices}
        out.write(json.dumps(result, ensure_ascii=False, separators=(",", ":")) + "\n")

if len(sys.argv) > 4:
    import numpy as np

    models = Path(sys.argv[4])
    logits = np.load(models / "llama-f32.npy").astype(np.float64)
    ids = [int(i) for i in (models / "llama-f32.txt").read_text().split("\n")[0].split()[2:]]
    logp = logits - logits.max(-1, keepdims=True)
    logp -= np.log(np.exp(logp).sum(-1, keepdims=True))
    n_context = 22  # BOS and "From the way the regimental commander saluted"
    for n in (len(ids), 30):  # all; up to " the commander-in"
        print("%.6f" % sum(logp[i - 1, ids[i]] for i in range(n_context, n)))
