"""Writes akunu/_abi.py, the ctypes declarations of the package, from the public header.

    python3 python/declare.py [--check]

Run it after every change of include/akunu. --check writes nothing and fails if the file is not
what the header says. The tests read the header through this module too, and compare each size and
offset with what a C compiler says.
"""

import re
import sys
from pathlib import Path
from typing import Dict, List, NamedTuple, Tuple

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include" / "akunu"
# All that akunu.h includes.
HEADERS = re.findall(r'^#include "akunu/(\w+\.h)"$', (INCLUDE / "akunu.h").read_text("utf-8"), re.M)
OUTPUT = Path(__file__).resolve().parent / "akunu" / "_abi.py"

SCALARS = {
    "bool": "c_bool",
    "char": "c_char",
    "double": "c_double",
    "float": "c_float",
    "int": "c_int",
    "int32_t": "c_int32",
    "int64_t": "c_int64",
    "size_t": "c_size_t",
    "uint8_t": "c_uint8",
    "uint32_t": "c_uint32",
    "uint64_t": "c_uint64",
    "unsigned": "c_uint",
}
# Texts with a length beside them and no NUL at their end: read by their address alone.
UNTERMINATED = {("akunu_meta", "string"), ("akunu_reply_event", "text")}


class Member(NamedTuple):
    """A member of a struct, or a parameter of a function; `type` without arrays: 'const char *'."""

    type: str
    name: str
    length: int  # of an array; 0: none


class Function(NamedTuple):
    """A function, or the type of a callback."""

    result: str
    parameters: List[Member]


class Header:
    """What the public header declares, in its order."""

    def __init__(self, folder: Path) -> None:
        self.constants: Dict[str, int] = {}
        self.structs: Dict[str, List[Member]] = {}
        self.aliases: Dict[str, str] = {}
        self.callbacks: Dict[str, Function] = {}
        self.functions: Dict[str, Function] = {}
        for name in HEADERS:
            self._read((folder / name).read_text(encoding="utf-8"))

    def _read(self, text: str) -> None:
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        for name, value in re.findall(r"^#define (AKUNU_VERSION_\w+) (\d+)$", text, flags=re.M):
            self.constants[name] = int(value)
        text = re.sub(r"^#.*$", "", text, flags=re.M)
        text = re.sub(r'extern "C" \{', "", text)
        # One declaration each; the braces of a struct or an enum hold no braces.
        for declaration in re.findall(r"[^;{}]+(?:\{[^{}]*\})?[^;{}]*;", text):
            self._declare(" ".join(declaration.split()))

    def _declare(self, text: str) -> None:
        enum = re.match(r"enum( \w+)? \{ (.*) \};$", text)
        struct = re.match(r"struct (\w+) \{ (.*) \};$", text)
        function = re.match(r"AKUNU_API (.*?)(\w+)\((.*)\);$", text)
        callback = re.match(r"typedef (.*?)(\w+)\((.*)\);$", text)
        alias = re.match(r"typedef (\w+) (\w+);$", text)
        if enum:
            for name, value in re.findall(r"(\w+) = (\d+)", enum.group(2)):
                self.constants[name] = int(value)
        elif struct:
            self.structs[struct.group(1)] = [
                member
                for line in struct.group(2).split(";")
                if line.strip()
                for member in parse_members(line)
            ]
        elif function or callback:
            found = function or callback
            assert found
            known = self.functions if function else self.callbacks
            known[found.group(2)] = Function(
                found.group(1).strip(), parse_parameters(found.group(3))
            )
        elif alias:
            self.aliases[alias.group(2)] = alias.group(1)
        elif not re.match(r"struct \w+;$", text):
            raise SystemExit(f"declare.py cannot read this declaration: {text}")

    def to_ctypes(self, text: str, in_callback: bool = False) -> str:
        """The ctypes type of a C type: 'POINTER(c_float)' for 'const float *'."""
        base = " ".join(text.replace("const", " ").replace("*", " ").split())
        stars = text.count("*")
        base = self.aliases.get(base, base)
        if base.startswith("enum "):
            base = "int"
        if base.startswith("struct ") and base[len("struct ") :] not in self.structs:
            base = "void"  # a handle
        if base in self.callbacks:
            return base
        if base == "void":
            if stars == 0:
                return "None"
            inner, stars = "c_void_p", stars - 1
        elif base == "char" and stars > 0:
            is_text = text.startswith("const char") and not in_callback
            inner, stars = "c_char_p" if is_text else "c_void_p", stars - 1
        else:
            inner = base[len("struct ") :] if base.startswith("struct ") else SCALARS[base]
        return "POINTER(" * stars + inner + ")" * stars

    def member_type(self, struct: str, member: Member) -> str:
        if (struct, member.name) in UNTERMINATED:
            return "c_void_p"
        kind = self.to_ctypes(member.type)
        return f"{kind} * {member.length}" if member.length else kind


def parse_members(line: str) -> List[Member]:
    """'char name[64], *text' is two members: 'char name[64]' and 'char *text'."""
    first, *others = [part.strip() for part in line.split(",")]
    found = re.match(r"(.*?)((?:\*\s*(?:const\s*)?)*)(\w+)(?:\[(\d+)\])?$", first)
    assert found, line
    base = found.group(1).strip()
    members = [Member(f"{base} {found.group(2)}".strip(), found.group(3), int(found.group(4) or 0))]
    for other in others:
        found = re.match(r"((?:\*\s*)*)(\w+)(?:\[(\d+)\])?$", other)
        assert found, line
        kind = f"{base} {found.group(1)}".strip()
        members.append(Member(kind, found.group(2), int(found.group(3) or 0)))
    return members


def parse_parameters(text: str) -> List[Member]:
    if text.strip() in ("", "void"):
        return []
    parameters = [parse_members(part)[0] for part in text.split(",")]
    # An array as a parameter is a pointer.
    return [Member(p.type + " *", p.name, 0) if p.length else p for p in parameters]


def annotation(kind: str) -> str:
    """What Python reads from a member of this ctypes type."""
    if kind in ("c_float", "c_double"):
        return "float"
    if kind == "c_bool":
        return "bool"
    if kind == "c_char_p":
        return "Optional[bytes]"
    if kind == "c_void_p":
        return "Optional[int]"
    if kind.startswith("c_char *"):
        return "bytes"
    return "int" if re.match(r"c_u?(int|size_t)\w*$", kind) else "Any"


def wrap(head: str, items: List[str], tail: str) -> List[str]:
    """One line, or one item a line where that is over 100 columns."""
    line = head + ", ".join(items) + tail
    if len(line) <= 100:
        return [line]
    return [head, *(f"        {item}," for item in items), "    " + tail]


def declarations(header: Header) -> Tuple[List[str], List[str]]:
    """The lines of structs and callbacks, and those of functions."""
    types: List[str] = []
    for name, members in header.structs.items():
        types += ["", "", f"class {name}(Structure):"]
        types += [f"    {m.name}: {annotation(header.member_type(name, m))}" for m in members]
    types += ["", ""]
    for name, callback in header.callbacks.items():
        kinds = [header.to_ctypes(callback.result)]
        kinds += [header.to_ctypes(p.type, in_callback=True) for p in callback.parameters]
        types += [f"{name} = CFUNCTYPE(", f"    {', '.join(kinds)}", ")"]
    for name, members in header.structs.items():
        types += ["", f"{name}._fields_ = ["]
        types += [f'    ("{m.name}", {header.member_type(name, m)}),' for m in members]
        types += ["]"]
    functions = ["", "# Result and parameters of each function.", "FUNCTIONS: Dict[str, Any] = {"]
    for name, function in header.functions.items():
        kinds = [header.to_ctypes(p.type) for p in function.parameters]
        result = header.to_ctypes(function.result)
        functions += wrap(f'    "{name}": ({result}, [', kinds, "]),")
    return types, [*functions, "}"]


def sampling_numbers() -> List[str]:
    """A TypedDict of the numbers of struct akunu_sampling_params."""
    kinds = {"f32": "float", "i32": "int"}
    table = (INCLUDE / "sampling.def").read_text("utf-8")
    rows = re.findall(r"^AKUNU_SAMPLING\((\w+), (\w+),", table, re.M)
    return ["", "", "class SamplingNumbers(TypedDict, total=False):",
            *(f"    {name}: {kinds[kind]}" for kind, name in rows)]


def generate(header: Header) -> str:
    types, functions = declarations(header)
    body = "\n".join([*types, *functions, *sampling_numbers()]) + "\n"
    used = [name for name in sorted({*SCALARS.values(), "c_char_p", "c_void_p"})
            if re.search(rf"\b{name}\b", body)]
    lines = [
        '"""The public header in ctypes. Made by python/declare.py: do not edit."""',
        "",
        "from __future__ import annotations",
        "",
        "from ctypes import (",
        "    CFUNCTYPE,",
        "    POINTER,",
        "    Structure,",
        *(f"    {name}," for name in used),
        ")",
        "from typing import Any, Dict, Optional, TypedDict",
        "",
        *(f"{name} = {value}" for name, value in header.constants.items()),
    ]
    return "\n".join(lines) + "\n" + body


def main() -> int:
    text = generate(Header(INCLUDE))
    if "--check" not in sys.argv[1:]:
        OUTPUT.write_text(text, encoding="utf-8")
    elif OUTPUT.read_text(encoding="utf-8") != text:
        print("python/akunu/_abi.py is not what include/akunu says: run python3 python/declare.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
