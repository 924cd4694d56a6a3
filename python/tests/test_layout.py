"""The ctypes declarations against the header, and against a C compiler."""

import ctypes
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Dict

from support import ROOT

sys.path.insert(0, str(ROOT / "python"))

import declare  # noqa: E402
from akunu import _abi  # noqa: E402

HEADER = declare.Header(declare.INCLUDE)
COMPILER = shlex.split(os.environ.get("CC", "cc"))


def write_program() -> str:
    """A C program that prints 'NAME VALUE' for each size, offset and constant."""
    lines = []
    for struct, members in HEADER.structs.items():
        lines.append(f'SHOW("{struct}", sizeof(struct {struct}));')
        for member in members:
            path = f"{struct}.{member.name}"
            lines.append(f'SHOW("{path}", offsetof(struct {struct}, {member.name}));')
            lines.append(f'SHOW("{path} size", sizeof(((struct {struct} *)0)->{member.name}));')
    for constant in HEADER.constants:
        lines.append(f'SHOW("{constant}", {constant});')
    body = "\n    ".join(lines)
    return (
        "#include <akunu/akunu.h>\n#include <stddef.h>\n#include <stdio.h>\n"
        '#define SHOW(name, value) printf("%s %zu\\n", name, (size_t)(value))\n'
        f"int main(void)\n{{\n    {body}\n    return 0;\n}}\n"
    )


def compile_and_run() -> Dict[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "layout.c"), Path(folder, "layout")
        source.write_text(write_program(), encoding="utf-8")
        include = str(ROOT / "include")
        subprocess.run([*COMPILER, "-I", include, str(source), "-o", str(program)], check=True)
        out = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
    return {name: int(n) for name, n in (line.rsplit(" ", 1) for line in out.splitlines())}


class Layout(unittest.TestCase):
    def test_declarations_are_those_of_the_header(self) -> None:
        text = declare.OUTPUT.read_text(encoding="utf-8")
        current = text == declare.generate(HEADER)
        self.assertTrue(current, "python/akunu/_abi.py is old: run python3 python/declare.py")

    @unittest.skipUnless(shutil.which(COMPILER[0]), f"no compiler {COMPILER[0]}")
    def test_sizes_and_offsets_are_the_compilers(self) -> None:
        expected = compile_and_run()
        found: Dict[str, int] = {}
        for struct, members in HEADER.structs.items():
            kind = getattr(_abi, struct)
            found[struct] = ctypes.sizeof(kind)
            for member in members:
                field = getattr(kind, member.name)
                found[f"{struct}.{member.name}"] = field.offset
                found[f"{struct}.{member.name} size"] = field.size
        for constant in HEADER.constants:
            found[constant] = getattr(_abi, constant)
        self.assertGreater(len(found), 500)
        self.assertEqual(found, expected)

    def test_every_function_of_the_header_is_declared(self) -> None:
        text = "".join(path.read_text(encoding="utf-8") for path in declare.INCLUDE.glob("*.h"))
        n_functions = text.count("AKUNU_API ") - text.count("define AKUNU_API ")
        self.assertEqual(n_functions, len(_abi.FUNCTIONS))

    def test_no_function_has_more_than_six_parameters(self) -> None:
        known = {**HEADER.functions, **HEADER.callbacks}
        self.assertEqual([name for name, f in known.items() if len(f.parameters) > 6], [])

    def test_a_struct_begins_with_its_size_if_it_has_defaults(self) -> None:
        events = {"akunu_reply_event", "akunu_request_event"}  # the library fills these
        sized = {name for name, members in HEADER.structs.items() if members[0].name == "size"}
        ends = "_default"
        defaults = {n[: -len(ends)] for n in HEADER.functions if n.endswith(ends)}
        self.assertEqual(sized - events, defaults)

    def test_functions_that_fill_a_struct_are_named_for_it(self) -> None:
        """akunu_X_default, akunu_get_X, akunu_Y_get_X, or the verb of the work before it."""
        names = [
            name
            for name, f in HEADER.functions.items()
            if len(f.parameters) > 1 and f.parameters[-1] == declare.Member("size_t", "size", 0)
        ]
        self.assertGreater(len(names), 40)
        verbs = r"_default$|_get_|_measure(_|$)|_tune$|_compress$"
        other = [n for n in names if not re.search(verbs, n)]
        self.assertEqual(other, [])


if __name__ == "__main__":
    unittest.main()
