#!/usr/bin/env python3
"""Draws docs/architecture.svg from src/layers.txt. usage: docs/architecture.py [SOURCE-ROOT]

The wings are bands, the one that all others use at the bottom; what a folder is for stands in src/README.md.
"""
import pathlib
import sys

WHAT = {
    "apps": "programs",
    "api": "public calls",
    "conversion": "models as other files",
    "speech": "recordings as text",
    "engine": "runs a model",
    "text": "text, tokens, prompts",
    "files": "models and caches",
    "base": "memory, threads, numbers",
}
WIDTH, LABEL, HEIGHT, GAP, MARGIN, LINE, LETTER = 880, 212, 30, 8, 14, 16, 7.2


def read_layers(text):
    """The wings in their order, the first one uses nothing; and the folders of each, in theirs."""
    wings, folders = [], {}
    for line in text.splitlines():
        chain = [name.strip() for link in line.split("#")[0].split("<") for name in link.split(",") if name.strip()]
        for name in chain:
            wing, _, folder = name.partition("/")
            wing = "engine" if name == "opencl" else wing
            if wing not in wings:
                wings.append(wing)
            if folder or name == "opencl":
                names = folders.setdefault(wing, [])
                if name not in names:
                    names.append(name)
    return wings, folders


def rows_of(names):
    """The boxes of a band in lines: (text, x, width) each."""
    lines, x = [[]], LABEL
    for name in names:
        text = name if name == "opencl" else name.split("/", 1)[1]
        width = round(len(text) * LETTER + 18)
        if x + width > WIDTH - MARGIN and lines[-1]:
            lines.append([])
            x = LABEL
        lines[-1].append((text, x, width))
        x += width + GAP
    return lines


def draw(wings, folders):
    order = [w for w in wings if w != "apps"] + ["apps"]
    out, y = [], MARGIN
    for wing in reversed(order):
        lines = rows_of(folders.get(wing, []))
        height = len(lines) * (HEIGHT + GAP) + GAP
        out.append('<rect x="%d" y="%d" width="%d" height="%d" rx="6" fill="#eef2f7" stroke="#8091a7"/>' % (MARGIN, y, WIDTH - 2 * MARGIN, height))
        middle = y + height / 2
        out.append('<text x="%d" y="%d" font-weight="bold">%s/</text>' % (MARGIN + 12, middle - 2, wing))
        out.append('<text x="%d" y="%d" fill="#51606f" font-size="12">%s</text>' % (MARGIN + 12, middle + 13, WHAT[wing]))
        for i, line in enumerate(lines):
            top = y + GAP + i * (HEIGHT + GAP)
            for text, x, width in line:
                out.append('<rect x="%d" y="%d" width="%d" height="%d" rx="4" fill="#ffffff" stroke="#8091a7"/>' % (x, top, width, HEIGHT))
                out.append('<text x="%d" y="%d" text-anchor="middle" font-family="monospace" font-size="12">%s</text>' % (x + width / 2, top + 19, text))
        y += height
        if wing == "apps":  # what the programs see of the library
            out.append('<text x="%d" y="%d" text-anchor="middle" font-size="12">include/akunu/*.h</text>' % (WIDTH / 2, y + LINE + 3))
            y += LINE
        y += GAP + 2
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="14">' % (WIDTH, y + MARGIN - GAP)
    about = "<title>The wings of the source: each uses only what is below it</title>"
    return "\n".join([head, about, '<rect width="100%" height="100%" fill="#ffffff"/>', *out, "</svg>"]) + "\n"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    sys.stdout.write(draw(*read_layers((root / "src/layers.txt").read_text())))


if __name__ == "__main__":
    main()
