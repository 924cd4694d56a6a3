#!/usr/bin/env python3
"""Edits a copy of the source into mutants that nobody chose: a seeded random sample of each folder.

    generate.py TREE --config FOLDER [--each N] [--seed N] FOLDER...

TREE is the copy, --config the folder with config.h. In each FOLDER of TREE/src (`python` is TREE/python/akunu), N
expressions or statements become `AK_MUTANT(n) ? wrong : right`, which mutant.h switches at run time, so one build has
them all. A line of standard output says what each is:

    number TAB folder TAB file:line TAB operator TAB before TAB after TAB the line of the source

Operators: relational (< and <=, == and !=), arithmetic (+ and -, * and /), logical (&& and ||), condition (negated),
constant (+ 1), statement (a call or an assignment that is left out), release (one that unlocks, frees or closes),
arguments (two of one type that are swapped).

Needs libclang (apt-get install python3-clang-14).
"""
import argparse
import collections
import pathlib
import random
import re
import sys

from clang import cindex
from clang.cindex import CursorKind as Kind

import python_mutants

FIRST = 1001  # numbers below are those of patches
RELATIONAL = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*"}
LOGICAL = {"&&": "||", "||": "&&"}
ASSIGNED = {"=", "+=", "-=", "|=", "&=", "*=", "/="}
OTHERS = {"relational": RELATIONAL, "arithmetic": ARITHMETIC, "logical": LOGICAL}
SYMMETRIC = re.compile(r"(strcmp|strcasecmp|memcmp|fmin|fmax|fminf|fmaxf|ak_min_\w+|ak_max_\w+|ak_alloc)\(")
RELEASE = re.compile(r"unlock|free|close|release|destroy|unmap|decref|end_|_end\b")
# What is compiled only if a value is known, and what says nothing to a user.
CONSTANT = {Kind.CASE_STMT, Kind.ENUM_CONSTANT_DECL, Kind.STATIC_ASSERT, Kind.INIT_LIST_EXPR, Kind.FIELD_DECL}
ASSERTED = re.compile(r"^\s*(assert|static_assert|_Static_assert)\b")

Mutant = collections.namedtuple("Mutant", "path begin end operator before after")


class File:
    """A source file, its text by offset, and the mutants that it may have."""

    def __init__(self, path, unit):
        self.path, self.text = path, path.read_bytes()
        self.found = []
        for cursor in unit.cursor.get_children():
            if cursor.kind == Kind.FUNCTION_DECL and cursor.is_definition() and self.has(cursor):
                self.walk(cursor, None)

    def has(self, cursor):
        return cursor.location.file and pathlib.Path(cursor.location.file.name) == self.path

    def span(self, cursor):
        """Its offsets; None: it is in another file, or begins or ends in a macro."""
        begin, end = cursor.extent.start, cursor.extent.end
        if not begin.file or not end.file or pathlib.Path(begin.file.name) != self.path or begin.offset >= end.offset:
            return None
        tokens = list(cursor.get_tokens())
        if not tokens or tokens[0].extent.start.offset != begin.offset:
            return None
        return begin.offset, end.offset

    def source(self, cursor):
        span = self.span(cursor)
        return self.text[span[0]:span[1]].decode() if span else None

    def add(self, cursor, operator, before, after, end=None):
        begin, stop = self.span(cursor)
        self.found.append(Mutant(self.path, begin, end or stop, operator, before, after))

    def walk(self, cursor, parent):
        if cursor.kind in CONSTANT or (cursor.kind == Kind.VAR_DECL and cursor.storage_class == cindex.StorageClass.STATIC):
            return
        children = list(cursor.get_children())
        if cursor.kind == Kind.DECL_STMT and any("[" in (self.source(c) or "[").split("=")[0] for c in children):
            return
        if self.span(cursor) and (parent is None or parent.kind != Kind.UNEXPOSED_EXPR or parent.extent != cursor.extent):
            self.mutate(cursor, parent, children)
        for child in children:
            self.walk(child, cursor)

    def mutate(self, cursor, parent, children):
        if cursor.kind == Kind.BINARY_OPERATOR and len(children) == 2:
            self.mutate_operator(cursor, children)
        if cursor.kind == Kind.INTEGER_LITERAL:
            text = self.source(cursor)
            if text and re.fullmatch(r"\d+[uUlL]*", text):
                self.add(cursor, "constant", text, "(%s + AK_MUTANT(@))" % text)
        if cursor.kind == Kind.IF_STMT:
            self.mutate_condition(children[0])
        if parent is not None and parent.kind == Kind.COMPOUND_STMT:
            self.mutate_statement(cursor, children)
        if cursor.kind == Kind.CALL_EXPR:
            self.mutate_arguments(cursor)

    def operator_of(self, left, right):
        """The token between two operands."""
        a, b = self.span(left), self.span(right)
        if not a or not b or a[1] > b[0]:
            return None
        between = re.sub(rb"/\*.*?\*/", b"", self.text[a[1]:b[0]], flags=re.S).decode().strip()
        return between.strip("() \n")

    def mutate_operator(self, cursor, children):
        token = self.operator_of(*children)
        whole = self.source(cursor)
        for name, others in OTHERS.items():
            if token not in others:
                continue
            if name == "arithmetic" and "sizeof" in whole:
                continue  # sizes of buffers are for sanitizers
            if name == "arithmetic" and any(c.type.get_canonical().kind == cindex.TypeKind.POINTER for c in children):
                continue
            # operands as they stand, with their parentheses
            begin, end = self.span(cursor)
            left, right = self.span(children[0])[1], self.span(children[1])[0]
            gap = self.text[left:right].decode()
            wrong = self.text[begin:left].decode() + gap.replace(token, others[token], 1) + self.text[right:end].decode()
            self.add(cursor, name, whole, "(AK_MUTANT(@) ? (%s) : (%s))" % (wrong, whole))

    def mutate_condition(self, condition):
        text = self.source(condition)
        if text:
            self.add(condition, "condition", text, "(AK_MUTANT(@) ? !(%s) : !!(%s))" % (text, text))

    def mutate_statement(self, cursor, children):
        text = self.source(cursor)
        is_call = cursor.kind == Kind.CALL_EXPR
        is_assignment = cursor.kind in (Kind.BINARY_OPERATOR, Kind.COMPOUND_ASSIGNMENT_OPERATOR) and len(children) == 2
        if is_assignment:
            is_assignment = self.operator_of(*children) in ASSIGNED
        if not text or not (is_call or is_assignment) or ASSERTED.match(text):
            return
        end = self.text.find(b";", self.span(cursor)[1])
        if end < 0 or self.text[self.span(cursor)[1]:end].strip():
            return
        operator = "release" if is_call and RELEASE.search(text.split("(")[0]) else "statement"
        self.add(cursor, operator, text, "if (!AK_MUTANT(@)) %s" % text)

    def mutate_arguments(self, cursor):
        arguments = list(cursor.get_arguments())
        whole = self.source(cursor)
        if whole and SYMMETRIC.match(whole):
            return
        for a, b in zip(arguments, arguments[1:]):
            x, y = self.span(a), self.span(b)
            same = a.type.get_canonical().spelling == b.type.get_canonical().spelling
            if not x or not y or not same or self.source(a) == self.source(b):
                continue
            begin, end = self.span(cursor)
            text = self.text
            wrong = (text[begin:x[0]] + text[y[0]:y[1]] + text[x[1]:y[0]] + text[x[0]:x[1]] + text[y[1]:end]).decode()
            self.add(cursor, "arguments", whole, "(AK_MUTANT(@) ? %s : %s)" % (wrong, whole))
            return


def read_file(path, flags):
    unit = cindex.Index.create().parse(str(path), args=flags)
    errors = [d for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
    if errors:  # what a build makes is not in the copy
        print("generate.py: without %s: %s" % (path.name, errors[0].spelling), file=sys.stderr)
        return []
    return File(path, unit).found


def find(tree, folder, flags):
    """All mutants that a folder may have."""
    if folder == "python":
        files = sorted((tree / "python/akunu").glob("*.py"))
        return [Mutant(path, *mutant) for path in files for mutant in python_mutants.find(path)]
    return [mutant for path in sorted((tree / "src" / folder).rglob("*.c")) for mutant in read_file(path, flags)]


def choose(found, n, rng):
    """n mutants, no two of which overlap: an operator at random first, so that constants, which are many, are not all."""
    by_operator = collections.defaultdict(list)
    for mutant in found:
        by_operator[mutant.operator].append(mutant)
    for mutants in by_operator.values():
        rng.shuffle(mutants)
    chosen = []
    while by_operator and len(chosen) < n:
        operator = rng.choice(sorted(by_operator))
        mutant = by_operator[operator].pop()
        if not by_operator[operator]:
            del by_operator[operator]
        if not any(m.path == mutant.path and m.begin < mutant.end and mutant.begin < m.end for m in chosen):
            chosen.append(mutant)
    return sorted(chosen, key=lambda m: (m.path, m.begin))


def write(chosen, numbers):
    """Puts the mutants into their files, the last one first."""
    for path in sorted({m.path for m in chosen}):
        text = path.read_bytes()
        for mutant in sorted((m for m in chosen if m.path == path), key=lambda m: -m.begin):
            after = mutant.after.replace("@", str(numbers[mutant])).encode()
            text = text[:mutant.begin] + after + text[mutant.end:]
        path.write_bytes(python_mutants.add_switch(text) if path.suffix == ".py" else text)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("tree", type=pathlib.Path)
    options.add_argument("--config", required=True)
    options.add_argument("--each", type=int, default=60)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("folders", nargs="+")
    options = options.parse_args()
    tree = options.tree.resolve()
    flags = ["-std=gnu11", "-D_GNU_SOURCE", "-I%s" % options.config, "-I%s/src" % options.config, "-I%s/include" % tree, "-I%s/src" % tree, "-I%s" % tree,
             '-DCLI_DATA_DIR="."', '-DAK_SYSCONFDIR="."']
    number = FIRST
    for folder in options.folders:
        rng = random.Random("%d %s" % (options.seed, folder))
        chosen = choose(find(tree, folder, flags), options.each, rng)
        numbers = {mutant: number + i for i, mutant in enumerate(chosen)}
        originals = {path: path.read_bytes() for path in {m.path for m in chosen}}
        write(chosen, numbers)
        for mutant in chosen:
            original = originals[mutant.path]
            line = original[:mutant.begin].count(b"\n") + 1
            text = original.split(b"\n")[line - 1].decode().strip()
            wrong = mutant.after.replace("@", str(numbers[mutant]))
            columns = (numbers[mutant], folder, "%s:%d" % (mutant.path.relative_to(tree), line), mutant.operator, mutant.before, wrong, text)
            print("\t".join(re.sub(r"\s+", " ", str(c)) for c in columns))
        number += len(chosen)


if __name__ == "__main__":
    main()
