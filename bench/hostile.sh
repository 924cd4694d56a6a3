#!/bin/sh
# Time and memory of rejecting hostile files. Each file is opened by `inspect`, and by `logits` if
# inspect accepts it, in a process of its own.
#
#   bench/hostile.sh AKUNU-CLI FOLDER [MAX-MS [MAX-KB]]
#
# FOLDER has the files and expect.json, an object of "NAME": "accept" | "reject". Prints the
# slowest and the largest ones, and whether each was accepted or rejected as expected.
# Exits with 1 if one was not, or took more than MAX-MS (100) or MAX-KB resident (65536).
set -u
cli=${1:?usage: hostile.sh AKUNU-CLI FOLDER [MAX-MS [MAX-KB]]} folder=${2:?a folder with expect.json}
python3 - "$cli" "$folder" "${3:-100}" "${4:-65536}" <<'PYTHON'
import json, os, resource, subprocess, sys, tempfile, time

cli, folder, max_ms, max_kb = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])


def run(*arguments):
    """Exit code, milliseconds, kB resident of one run; the fastest of three."""
    best = None
    for _ in range(3):
        begun = time.perf_counter()
        child = subprocess.Popen([cli, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        took = 1e3 * (time.perf_counter() - begun)
        if best is None or took < best[1]:
            best = (os.waitstatus_to_exitcode(status), took, usage.ru_maxrss)
    return best


rows, wrong = [], []
with tempfile.TemporaryDirectory() as work:
    for name, expected in json.load(open(os.path.join(folder, "expect.json"))).items():
        path = os.path.join(folder, name)
        code, took, kb = run("inspect", "-m", path, "--json")
        weights = name.startswith(("gguf-", "st-"))  # what can be run
        if code == 0 and expected == "reject" and weights:
            code, took, kb = max((code, took, kb), run("logits", "-m", path, "--ids", "1 2 3", "--no-cache", "--out", work + "/l.npy"))
        rows.append((took, kb, name, code))
        if code not in (0, 3) or (code == 0) != (expected == "accept"):
            wrong.append(f"{name}: exit code {code}, expected {expected}")
        if took > max_ms or kb > max_kb:
            wrong.append(f"{name}: {took:.0f} ms, {kb} kB")
median = sorted(t for t, _, _, _ in rows)[len(rows) // 2]
print(f"{len(rows)} files, median {median:.1f} ms; slowest " + ", ".join(f"{n} {t:.1f} ms" for t, _, n, _ in sorted(rows)[:-4:-1]))
print("largest " + ", ".join(f"{n} {k / 1024:.1f} MB" for _, k, n, _ in sorted(rows, key=lambda r: -r[1])[:3]))
print("\n".join(wrong) if wrong else "all as expected")
sys.exit(bool(wrong))
PYTHON
