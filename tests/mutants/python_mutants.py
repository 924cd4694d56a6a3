"""The mutants that a Python file may have, for generate.py."""
import ast
import re

RELATIONAL = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
              ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in"}
ARITHMETIC = {ast.Add: "-", ast.Sub: "+", ast.Mult: "//", ast.FloorDiv: "*"}
RELEASE = re.compile(r"free|close|release|__exit__|_end\b")
SWITCH = "AK_MUTANT(@)"


class Finder(ast.NodeVisitor):
    """Lists (begin, end, operator, before, after), as offsets of bytes, of what is in a function."""

    def __init__(self, text):
        self.text, self.found = text, []
        self.lines = [0]
        for line in text.split(b"\n"):
            self.lines.append(self.lines[-1] + len(line) + 1)
        self.inside = 0

    def span(self, node):
        return self.lines[node.lineno - 1] + node.col_offset, self.lines[node.end_lineno - 1] + node.end_col_offset

    def source(self, node):
        begin, end = self.span(node)
        return self.text[begin:end].decode()

    def add(self, node, operator, after):
        if self.inside:
            self.found.append((*self.span(node), operator, self.source(node), after))

    def either(self, node, operator, wrong):
        self.add(node, operator, "((%s) if %s else (%s))" % (wrong, SWITCH, self.source(node)))

    def visit_FunctionDef(self, node):
        self.inside += 1
        for statement in node.body:  # not its decorators and defaults, which run once
            self.visit(statement)
        self.inside -= 1

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_JoinedStr(self, node):
        """Its parts have no places of their own before Python 3.12."""

    def visit_Compare(self, node):
        if len(node.ops) == 1 and type(node.ops[0]) in RELATIONAL:
            sides = self.source(node.left), self.source(node.comparators[0])
            self.either(node, "relational", "(%s) %s (%s)" % (sides[0], RELATIONAL[type(node.ops[0])], sides[1]))
        self.generic_visit(node)

    def visit_BinOp(self, node):
        is_text = any(isinstance(side, (ast.Constant, ast.JoinedStr)) and not isinstance(getattr(side, "value", ""), (int, float))
                      for side in (node.left, node.right))
        if type(node.op) in ARITHMETIC and not is_text:
            self.either(node, "arithmetic", "(%s) %s (%s)" % (self.source(node.left), ARITHMETIC[type(node.op)], self.source(node.right)))
        self.generic_visit(node)

    def visit_BoolOp(self, node):
        other = " or " if isinstance(node.op, ast.And) else " and "
        self.either(node, "logical", other.join("(%s)" % self.source(value) for value in node.values))
        self.generic_visit(node)

    def visit_If(self, node):
        self.either(node.test, "condition", "not (%s)" % self.source(node.test))
        self.generic_visit(node)

    visit_IfExp = visit_While = visit_If

    def visit_Constant(self, node):
        if type(node.value) is int:
            self.add(node, "constant", "(%s + %s)" % (self.source(node), SWITCH))

    def visit_Expr(self, node):
        if isinstance(node.value, ast.Call):
            operator = "release" if RELEASE.search(self.source(node.value.func)) else "statement"
            self.add(node, operator, "if not %s: %s" % (SWITCH, self.source(node)))
        self.generic_visit(node)

    def visit_Assign(self, node):
        self.add(node, "statement", "if not %s: %s" % (SWITCH, self.source(node)))
        self.generic_visit(node)

    visit_AugAssign = visit_Assign

    def visit_Call(self, node):
        pairs = [(a, b) for a, b in zip(node.args, node.args[1:]) if not isinstance(a, ast.Starred) and not isinstance(b, ast.Starred)]
        for a, b in pairs[:1]:
            (begin, end), x, y = self.span(node), self.span(a), self.span(b)
            text = self.text
            wrong = text[begin:x[0]] + text[y[0]:y[1]] + text[x[1]:y[0]] + text[x[0]:x[1]] + text[y[1]:end]
            self.either(node, "arguments", wrong.decode())
        self.generic_visit(node)


def add_switch(text):
    """Imports AK_MUTANT before the first import; those of __future__ must stay in front."""
    return re.sub(rb"^(?=(import|from) (?!__future__))", b"from mutant import AK_MUTANT\n", text, count=1, flags=re.M)


def find(path):
    text = path.read_bytes()
    finder = Finder(text)
    finder.visit(ast.parse(text))
    return finder.found
