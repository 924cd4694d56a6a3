#!/usr/bin/env python3
"""How fast one model runs on several ranks (docs/scale.md): a simulator of passes, and what it is calibrated with.

    bench/scale.py predict -m MODEL.gguf|SHAPE [-n 1,2,4] [--split rows,layers] [--host HOST.json] [--link GBIT]
        [--latency US] [-p 512] [-d 0]
    bench/scale.py measure -m MODEL.gguf [-o HOST.json] [-t 1] [--copies 1] [--mpirun "mpirun -n 2 …"]
    bench/scale.py tables

predict prints tokens/s of decode and of a prompt, what a rank reads, and what bounds it. SHAPE is a name of --help.
HOST.json is what measure writes; without it, hosts are cores of the machine of bench/notes: --cores of them, which
read at most --read GB/s together. --link and --latency describe the network; without --link, exchanges cost what was
measured, and nothing more.

measure runs `akunu-cli bench --breakdown` in --copies processes of -t threads at once, since they share the memory, and
bench/exchange.c on the ranks that --mpirun starts. A rate is what the slowest process got.

tables prints those of docs/scale.md.

A pass is what src/engine/spec/shard.c and src/engine/cpu/ranks.c make of it. Ranks that share rows divide products, attention and
the elements of the feed-forward network, in units of whole heads and of 16 rows; the largest shard decides. Each
repeats norms and the router, and quantizes what it sends for products. All send their part to all others, four times a
layer, of a long pass while they compute its other half; who is faster waits. A rank with a run of layers computes them
whole, and sends each pass's rows on.
"""
import argparse
import bisect
import json
import math
import os
import re
import subprocess
import sys
import tempfile

FLOAT = 4
ACTIVATION = 1.5  # bytes of an element as a product reads it, and as it is sent (src/engine/cpu/ranks_shards.c)
HALVES = 128  # passes of as many tokens run in halves: one is computed while the other's shards are exchanged
TILE_ROWS = 16
EAGER = 64 * 1024  # longer messages wait for an answer first: Open MPI's btl_tcp_eager_limit
GOODPUT = 0.95  # of a link's rate, with frames of 1500 bytes
LISTS = 8 * (1 + 40 + 16)  # bytes of a rank's largest logits for top-k 40 (src/engine/cpu/ranks_best.c)
BATCH = {"rows": 512, "layers": 64}  # tokens of a pass at most
BARRIER = 1e-6  # seconds of a step of more than one thread; an assumption

# Bits per weight: of Q4_K_M's types, of which Q6_K has the output and half of v and down.
Q4_K, Q6_K = 4.5, 6.5625
Q4_K_M = {"v": (Q4_K + Q6_K) / 2, "down": (Q4_K + Q6_K) / 2, "output": Q6_K}

# layers, width, heads, KV heads, elements of a head, feed-forward elements, vocabulary; experts, used, elements of one
SHAPES = {
    "llama-3.1-8b": (32, 4096, 32, 8, 128, 14336, 128256),
    "llama-3.1-70b": (80, 8192, 64, 8, 128, 28672, 128256),
    "llama-3.1-405b": (126, 16384, 128, 8, 128, 53248, 128256),
    "qwen3-235b-a22b": (94, 4096, 64, 4, 128, 0, 151936, 128, 8, 1536),
}


# ---- What ranks have --------------------------------------------------------
def chunk(count, n, i):
    """Where chunk i of n begins among `count`."""
    return count * i // n


def largest(n, n_ranks, unit=0):
    """Elements of the largest shard (ak_op_shard_begin)."""
    unit = unit or (TILE_ROWS if n // TILE_ROWS >= n_ranks else 1)
    units = -(-n // unit)
    return max(min(chunk(units, n_ranks, r + 1) * unit, n) - chunk(units, n_ranks, r) * unit for r in range(n_ranks))


def largest_heads(heads, groups, n_ranks):
    """Heads and KV heads of the rank with most."""
    if n_ranks <= groups:
        kv = max(chunk(groups, n_ranks, r + 1) - chunk(groups, n_ranks, r) for r in range(n_ranks))
        return kv * heads // groups, kv
    owners = [chunk(groups, n_ranks, r) for r in range(n_ranks)]
    return max(-(-(heads // groups) // owners.count(g)) for g in set(owners)), 1


class Model:
    """A decoder: its sizes, and the bytes of a layer's weights by role."""

    def __init__(self, name, layers, width, heads, kv_heads, head, ffn, vocab, experts=0, used=0, expert_ffn=0):
        self.name, self.layers, self.width, self.vocab = name, layers, width, vocab
        self.heads, self.kv_heads, self.head = heads, kv_heads, head
        self.ffn, self.experts, self.used, self.expert_ffn = ffn, experts, used, expert_ffn
        self.bytes = {}
        for role, elements in self.elements().items():
            self.bytes[role] = elements * Q4_K_M.get(role, Q4_K) / 8

    def elements(self):
        """Weights of a layer by role; those of the output once."""
        width, q, kv = self.width, self.heads * self.head, self.kv_heads * self.head
        inner = self.experts * self.expert_ffn if self.experts else self.ffn
        out = {"q": width * q, "k": width * kv, "v": width * kv, "attention_output": width * q}
        out.update(gate=width * inner, up=width * inner, down=width * inner, output=width * self.vocab)
        return out

    def total_bytes(self):
        return sum(b * (1 if role == "output" else self.layers) for role, b in self.bytes.items())


ROLES = {"attn_q": "q", "attn_k": "k", "attn_v": "v", "attn_output": "attention_output", "ffn_gate": "gate"}
ROLES.update({"ffn_up": "up", "ffn_down": "down", "ffn_gate_exps": "gate", "ffn_up_exps": "up", "ffn_down_exps": "down"})


def read_model(path, cli):
    """A model of a GGUF file, or a shape by name."""
    if path in SHAPES:
        return Model(path, *SHAPES[path])
    info = json.loads(run([cli, "inspect", "-m", path, "--json"]))
    meta, tensors = info["metadata"], {t["name"]: t for t in info["tensors"]}

    def get(key, other=None):
        value = meta.get(f"{info['architecture']}.{key}", other)
        if value is None:
            raise SystemExit(f"{path}: no metadata {info['architecture']}.{key}; expected a decoder in a GGUF file")
        return value

    width, heads, experts = get("embedding_length"), get("attention.head_count"), get("expert_count", 0)
    output = tensors.get("output.weight") or tensors["token_embd.weight"]
    model = Model(os.path.basename(path), get("block_count"), width, heads, get("attention.head_count_kv", heads),
                  get("attention.key_length", width // heads), get("feed_forward_length", 0), output["shape"][0],
                  experts, get("expert_used_count", 0), get("expert_feed_forward_length", 0))
    model.bytes = dict.fromkeys(model.bytes, 0.0)
    model.bytes["output"] = output["bytes"]
    for name, tensor in tensors.items():
        part = re.fullmatch(r"blk\.\d+\.(\w+)\.weight", name)
        if part and part[1] in ROLES:
            model.bytes[ROLES[part[1]]] += tensor["bytes"] / model.layers
    if not all(model.bytes.values()):
        raise SystemExit(f"{path}: expected a decoder with attention in each layer, and unmerged weights")
    return model


# ---- What hosts do ----------------------------------------------------------
class Host:
    """Rates of one rank, and seconds of exchanges. decode and prefill: seconds per element of what is not a product."""

    def __init__(self, record):
        self.read, self.ops = record["read"], record["ops"]
        self.decode, self.prefill = record["decode"], record["prefill"]
        self.attention_ops, rows = record["attention_ops"], record["exchange"]
        self.points = [row for row in rows if "bytes" in row]
        # time of the slowest rank of two, as a multiple of the mean
        self.slowest = next((row["slowest"] for row in rows if "slowest" in row), 1.0)
        self.step = 0.0

    def times(self, cores, read):
        """The same cores, more of them, which read at most so many bytes per second."""
        self.read = min(self.read * cores, read) if read else self.read * cores
        self.ops *= cores
        self.attention_ops *= cores
        self.decode = {k: v / cores for k, v in self.decode.items()}
        self.prefill = {k: v / cores for k, v in self.prefill.items()}
        self.step = BARRIER if cores > 1 else 0.0

    def slower(self, n):
        """n ranks take turns on their cores. Exchanges are those that were measured in this way."""
        self.read, self.ops, self.attention_ops = self.read / n, self.ops / n, self.attention_ops / n
        self.decode = {k: v * n for k, v in self.decode.items()}
        self.prefill = {k: v * n for k, v in self.prefill.items()}

    def curve(self, messages, strided):
        """Sizes in bytes, and seconds, of exchanges of so many messages."""
        points = sorted((p["bytes"], p["seconds"]) for p in self.points
                        if p["messages"] == messages and (p["rows"] > 1) == strided)
        return [p[0] for p in points], [p[1] for p in points]

    def at(self, messages, size, strided):
        """Seconds of an exchange as measured, or between two sizes that were."""
        sizes, seconds = self.curve(messages, strided)
        if size <= sizes[0]:
            if not strided:
                return seconds[0]
            return max(self.at(messages, size, False), seconds[0] * size / sizes[0])
        if size >= sizes[-1]:
            return seconds[-1] * size / sizes[-1]
        i = bisect.bisect(sizes, size)
        part = math.log(size / sizes[i - 1]) / math.log(sizes[i] / sizes[i - 1])
        return seconds[i - 1] * (seconds[i] / seconds[i - 1]) ** part

    def exchange(self, messages, size, strided):
        """Seconds of `messages` messages of a size to and from each rank, which the processes take for it."""
        counts = sorted({p["messages"] for p in self.points})
        one = self.at(counts[0], size, strided)
        if len(counts) == 1 or messages <= counts[0]:
            return one * messages / counts[0] if messages > counts[0] else one
        many = self.at(counts[-1], size, strided)
        return one + (messages - counts[0]) * max(many - one, 0.0) / (counts[-1] - counts[0])


class Link:
    """Between hosts. rate: bytes per second, None: as fast as what was measured."""

    def __init__(self, gbit, microseconds):
        self.rate = gbit * 1e9 / 8 * GOODPUT if gbit else None
        self.latency = microseconds * 1e-6

    def exchange(self, host, messages, size, strided=False):
        """Seconds that the processes take, without and with the size; of the wire; of its latency."""
        if messages == 0 or size == 0:
            return 0.0, 0.0, 0.0, 0.0
        fixed = host.exchange(messages, 64, False)
        software = max(host.exchange(messages, size, strided), fixed)
        wire = messages * size / self.rate if self.rate else 0.0
        latency = self.latency * (3 if size > EAGER else 1)
        return fixed, software - fixed, wire, latency


# ---- A pass -----------------------------------------------------------------
COMPUTING = ("reading", "arithmetic", "attention", "repeated")
PARTS = COMPUTING + ("latency", "bandwidth")


class Pass:
    """Seconds of a pass of n tokens, by what they go to, on the rank that takes longest."""

    def __init__(self, model, host, link, n, depth, n_ranks, all_logits=False):
        self.m, self.host, self.link, self.n, self.depth, self.n_ranks = model, host, link, n, depth, n_ranks
        self.all_logits = all_logits
        self.rate = host.decode if n == 1 else host.prefill
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self.in_halves, self.network = n >= HALVES and n_ranks > 1, 0.0

    def product(self, size, elements, rows, part=1.0, share=1.0):
        """rows rows of activations · weights, of which `part` is read, and this rank has `share`."""
        reading = size * part * share / self.host.read
        arithmetic = 2.0 * elements * rows * share / self.host.ops
        self.seconds["reading" if reading > arithmetic else "arithmetic"] += max(reading, arithmetic)
        self.seconds["repeated"] += self.host.step

    def elementwise(self, kind, elements, shared=False):
        self.seconds["attention" if shared else "repeated"] += elements * self.rate[kind] + self.host.step

    def gather(self, rows, n_largest, for_product=False):
        """Each rank sends its elements of `rows` rows to all others."""
        halves = 2 if self.in_halves else 1
        size = rows / halves * n_largest * (ACTIVATION if for_product else FLOAT)
        for _ in range(halves):
            self.message(self.n_ranks - 1, size, rows > 1 and not for_product, self.in_halves)

    def attention(self, heads, kv_heads):
        """Each token with those before it."""
        m, mean = self.m, self.depth + (self.n + 1) / 2
        arithmetic = 4.0 * self.n * mean * heads * m.head / self.host.attention_ops
        reading = 2 * 2 * (self.depth + self.n) * kv_heads * m.head / self.host.read  # F16
        self.seconds["attention"] += max(arithmetic, reading) if self.n > 1 else reading + heads * self.rate["head"]

    def layer(self, n_ffn):
        """n_ffn: tokens that the feed-forward network sees."""
        m, n, ranks, e = self.m, self.n, self.n_ranks, self.m.elements()
        heads, kv = largest_heads(m.heads, m.kv_heads, ranks)
        q = heads * m.head
        self.elementwise("norm", n * m.width)
        self.product(m.bytes["q"], e["q"], n, share=heads / m.heads)
        for role in "kv":
            self.product(m.bytes[role], e[role], n, share=kv / m.kv_heads)
        self.elementwise("rotate", n * (heads + 2 * kv) * m.head, shared=True)
        self.attention(heads, kv)
        self.gather(n, q, for_product=True)
        self.elementwise("norm", n * q)
        width = largest(m.width, ranks)
        self.product(m.bytes["attention_output"], e["attention_output"], n, share=width / m.width)
        self.gather(n, width)
        self.elementwise("add", n * m.width)
        self.elementwise("norm", n_ffn * m.width)
        self.feed_forward(n_ffn, width)

    def feed_forward(self, n, width):
        m, ranks, e, part = self.m, self.n_ranks, self.m.elements(), 1.0
        rows, inner, unit = n, m.ffn, 0
        if m.experts:  # of which the tokens of a pass choose some
            rows, inner, unit = n * m.used, m.expert_ffn, TILE_ROWS
            part = 1.0 - (1.0 - m.used / m.experts) ** n
            self.product(FLOAT * m.experts * m.width, m.experts * m.width, n)
            width = largest(m.width, ranks, TILE_ROWS)
        mine = largest(inner, ranks, unit)
        for role in ("gate", "up"):
            self.product(m.bytes[role], e[role] / (m.experts or 1), rows, part, mine / inner)
        self.elementwise("gated", rows * mine, shared=True)
        self.gather(rows, mine, for_product=True)
        self.elementwise("norm", rows * mine)
        self.product(m.bytes["down"], e["down"] / (m.experts or 1), rows, part, width / m.width)
        self.gather(n, width)  # of experts their sum
        self.elementwise("add", rows * width if m.experts else rows * m.width)

    def output(self):
        """Logits of one token, for rank 0."""
        m, vocab = self.m, largest(self.m.vocab, self.n_ranks)
        self.elementwise("norm", m.width)
        self.product(m.bytes["output"], m.elements()["output"], 1, share=vocab / m.vocab)
        if self.n_ranks > 1:
            self.message(self.n_ranks - 1, 64)  # what to do
            self.message(self.n_ranks - 1, vocab * FLOAT if self.all_logits else LISTS)

    def message(self, n, size, strided=False, overlaps=False):
        """This rank sends to n others, or gets from them; `overlaps`: it computes meanwhile, but for the copying."""
        fixed, copying, wire, latency = self.link.exchange(self.host, n, size, strided)
        if overlaps:
            self.network += wire + latency
            wire = latency = 0.0
        self.seconds["latency"] += fixed + latency
        self.seconds["bandwidth"] += max(copying, wire)

    def layers(self, n_layers, is_last):
        """The pass of a run of layers; the last one's feed-forward network sees the tokens with logits."""
        for i in range(n_layers):
            last = is_last and i + 1 == n_layers and not self.m.experts
            self.layer(1 if last else self.n)
        if self.n_ranks > 1 and self.n > 1:  # ranks that read memory share it: who is late then gets more
            for part in COMPUTING:
                self.seconds[part] *= self.host.slowest
        self.seconds["bandwidth"] += max(self.network - self.all(), 0.0)
        return self

    def all(self):
        return sum(self.seconds.values())


def add(to, seconds, times=1.0):
    for part, value in seconds.items():
        to[part] += times * value


def pass_of_rows(model, host, link, n, depth, n_ranks, all_logits):
    p = Pass(model, host, link, n, depth, n_ranks, all_logits).layers(model.layers, True)
    p.output()
    return p.seconds


def stages_of_layers(model, host, link, n, depth, n_ranks, all_logits):
    """Of each rank: seconds of its part of a pass, and of the message that it then sends."""
    stages = []
    begins = [-(-model.layers * r // n_ranks) for r in range(n_ranks + 1)]
    for r in range(n_ranks):
        is_last = r + 1 == n_ranks
        own = Pass(model, host, link, n, depth, 1).layers(begins[r + 1] - begins[r], is_last)
        sent = Pass(model, host, link, n, depth, 1)
        if is_last:
            own.output()
        if n_ranks > 1:
            size = n * model.width * FLOAT
            if is_last:
                size = model.vocab * FLOAT if all_logits else LISTS
            sent.message(1, size)
        if n_ranks > 1 and r == 0:
            own.message(n_ranks - 1, 64)  # what to do
        stages.append((own.seconds, sent.seconds))
    return stages


def prompt_seconds(model, host, link, args, n_ranks, split):
    """Seconds of a prompt, by part: chunks one after another, or through the ranks."""
    batch = args.batch or BATCH[split]
    chunks = [(at, min(batch, args.prompt - at)) for at in range(0, args.prompt, batch)]
    total = dict.fromkeys(PARTS, 0.0)
    free, end = [0.0] * n_ranks, 0.0
    for at, n in chunks:
        if split == "rows":
            add(total, pass_of_rows(model, host, link, n, args.depth + at, n_ranks, args.all_logits))
            continue
        ready = 0.0
        stages = stages_of_layers(model, host, link, n, args.depth + at, n_ranks, args.all_logits)
        for r, (own, sent) in enumerate(stages):
            free[r] = max(ready, free[r]) + sum(own.values())
            ready = end = free[r] + sum(sent.values())  # while the rank goes on
            add(total, own)
            add(total, sent)
    if split == "layers":  # parts of the ranks' work, as parts of the time that has passed
        scale = end / sum(total.values())
        total = {part: value * scale for part, value in total.items()}
    return total


def decode_seconds(model, host, link, args, n_ranks, split):
    if split == "rows":
        return pass_of_rows(model, host, link, 1, args.depth + 1, n_ranks, args.all_logits)
    total = dict.fromkeys(PARTS, 0.0)
    for own, sent in stages_of_layers(model, host, link, 1, args.depth + 1, n_ranks, args.all_logits):
        add(total, own)
        add(total, sent)
    return total


def bound(seconds):
    """What takes longest, and its percentage."""
    part = max(seconds, key=seconds.get)
    return part, 100.0 * seconds[part] / sum(seconds.values())


# ---- Measuring --------------------------------------------------------------
def run(command):
    try:
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"{' '.join(command)}: {error}") from error


def bench_copies(args):
    """Breakdowns of processes that run at the same time: by test, one of each process."""
    tests = {}
    for test in (["-p", "0", "-n", "64"], ["-p", "512", "-n", "0"]):
        command = [args.cli, "bench", "-m", args.model, "-t", str(args.threads), "-r", "3", "--breakdown", "--json"]
        processes = []
        for i in range(args.copies):
            cpus = f"{i * args.threads}-{(i + 1) * args.threads - 1}"
            processes.append(subprocess.Popen(command + test + ["-Cr", cpus], stdout=subprocess.PIPE, text=True))
        rows = []
        for process in processes:
            out = process.communicate()[0]
            if process.returncode:
                raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
            rows.append(json.loads(out)[0])
        tests["decode" if test[1] == "0" else "prefill"] = min(rows, key=lambda row: row["median_ts"])
    return tests


def rates_of(model, tests):
    """What a breakdown says of one rank."""
    out, n, layers = {}, 512, model.layers
    for test, tokens in (("decode", 1), ("prefill", n)):
        rows = {r["operation"]: r for r in tests[test]["breakdown"]}
        # A breakdown's clock takes time of its own: its parts are those of a pass without it.
        passes = tokens / tests[test]["median_ts"]
        scale = passes / sum(r["seconds"] + r["wait_seconds"] for r in rows.values())
        seconds = {k: (r["seconds"] + r["wait_seconds"]) * scale for k, r in rows.items()}
        linear = [k for k in rows if k.startswith("linear ") and k not in ("linear output", "linear router")]
        if test == "decode":
            linear.append("linear output")
            out["read"] = sum(rows[k]["bytes"] for k in linear) / sum(seconds[k] for k in linear)
        else:
            out["ops"] = model_ops(model, n) / sum(seconds[k] for k in linear)
        last = 1 if model.experts else 0
        ffn_tokens = (layers * tokens) if last or tokens == 1 else (layers - 1) * tokens + 1
        inner = model.used * model.expert_ffn if model.experts else model.ffn
        q, kv = model.heads * model.head, model.kv_heads * model.head
        elements = {
            "norm, quantize": layers * tokens * (model.width + q) + ffn_tokens * (model.width + inner) + model.width,
            "add": layers * tokens * model.width + ffn_tokens * model.width * (model.used or 1),
            "gated": ffn_tokens * inner,
            "qkv": layers * tokens * (q + 2 * kv),
        }
        known = dict(zip(elements, ("norm", "add", "gated", "rotate")))
        out[test] = {known[k]: seconds.get(k, 0.0) / elements[k] for k in elements}
        if test == "decode":
            out[test]["head"] = seconds["attention"] / (layers * model.heads)
        else:
            out["attention_ops"] = rows["attention"]["ops"] / seconds["attention"]
    return out


def model_ops(model, n):
    """Operations of the layers' products, of a pass of n tokens."""
    e, experts = model.elements(), model.experts or 1
    attention = sum(e[role] for role in ("q", "k", "v", "attention_output"))
    ffn = sum(e[role] for role in ("gate", "up", "down")) * (model.used or 1) / experts
    tokens = model.layers * n if model.experts else (model.layers - 1) * n + 1
    return 2.0 * (attention * model.layers * n + ffn * tokens)


def measure_exchanges(args):
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "exchange.c")
    with tempfile.TemporaryDirectory() as folder:
        program = args.program or os.path.join(folder, "exchange")
        if not os.path.exists(program):
            run([args.mpicc, "-O2", source, "-o", program])
        lines = run(args.mpirun.split() + [program]).splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def measure(args):
    model = read_model(args.model, args.cli)
    tests = bench_copies(args)
    record = {"model": model.name, "threads": args.threads, "copies": args.copies}
    record.update({"tokens_per_second": {test: row["median_ts"] for test, row in tests.items()}})
    record.update(rates_of(model, tests))
    record["exchange"] = measure_exchanges(args) if args.mpirun else []
    text = json.dumps(record, indent=1) + "\n"
    if args.output == "-":
        sys.stdout.write(text)
        return
    with open(args.output, "w", encoding="utf-8") as f:
        f.write(text)


# ---- Predicting -------------------------------------------------------------
# One core of the machine of bench/notes (Zen 4, AVX-512) with both busy: Qwen2.5-Coder-1.5B Q4_K_M. Exchanges: Open
# MPI over TCP between two network namespaces.
CORE = {
    "read": 1.77e+10,
    "ops": 3.25e+11,
    "attention_ops": 8.79e+10,
    "decode": {"norm": 7.7e-10, "add": 4.95e-10, "gated": 5.28e-10, "rotate": 4.48e-09, "head": 8.7e-07},
    "prefill": {"norm": 3.22e-10, "add": 7.25e-10, "gated": 9.85e-10, "rotate": 4.58e-10},
    "exchange": [
        {"messages": m, "rows": rows, "bytes": size, "seconds": seconds}
        for m, rows, size, seconds in (
            (1, 1, 64, 9.19e-06),
            (1, 1, 4096, 1.31e-05),
            (1, 1, 16384, 2.53e-05),
            (1, 1, 65536, 8.16e-05),
            (1, 1, 262144, 0.000196),
            (1, 1, 1048576, 0.000631),
            (7, 1, 64, 5.22e-05),
            (7, 1, 4096, 6.34e-05),
            (7, 1, 16384, 0.0001),
            (7, 1, 262144, 0.00154),
            (1, 512, 524288, 0.000477),
            (1, 512, 2097152, 0.00169),
            (1, 512, 8388608, 0.00626),
            (7, 512, 262144, 0.0014),
            (7, 512, 1048576, 0.00572),
        )
    ],
}


def make_host(args):
    record = CORE
    if args.host:
        with open(args.host, encoding="utf-8") as f:
            record = json.load(f)
    if args.exchange:
        with open(args.exchange, encoding="utf-8") as f:
            record = {**record, "exchange": json.load(f)["exchange"]}
    host = Host(record)
    if not args.host:
        host.times(args.cores, args.read * 1e9)
    if args.ranks_per_core > 1:
        host.slower(args.ranks_per_core)
    return host


def predict_one(model, host, link, args, n_ranks, split):
    decode = decode_seconds(model, host, link, args, n_ranks, split)
    prompt = prompt_seconds(model, host, link, args, n_ranks, split)
    return {
        "model": model.name, "ranks": n_ranks, "split": split if n_ranks > 1 else "-",
        "gigabytes": model.total_bytes() / n_ranks / 1e9,
        "decode": 1.0 / sum(decode.values()), "decode_bound": bound(decode), "decode_seconds": decode,
        "prompt": args.prompt / sum(prompt.values()), "prompt_bound": bound(prompt), "prompt_seconds": prompt,
    }


def predict(args):
    model, host, link = read_model(args.model, args.cli), make_host(args), Link(args.link, args.latency)
    rows = []
    for n in args.ranks:
        if n > model.heads:
            raise SystemExit(f"{n} ranks; {model.name} has {model.heads} attention heads: expected at most as many ranks")
        for split in args.split if n > 1 else args.split[:1]:
            rows.append(predict_one(model, host, link, args, n, split))
    if args.json:
        print(json.dumps(rows, indent=1))
        return
    print("| ranks | split | GB per rank | decode, tok/s | most of it | prompt, tok/s | most of it |")
    print("|---:|---|---:|---:|---|---:|---|")
    for r in rows:
        print(f"| {r['ranks']} | {r['split']} | {r['gigabytes']:.1f} | {r['decode']:.2f} | {words(r['decode_bound'])} "
              f"| {r['prompt']:.1f} | {words(r['prompt_bound'])} |")


def words(b):
    return f"{b[0]}, {b[1]:.0f} %"


def tables(args):
    args.all_logits = False
    for shape in ("llama-3.1-70b", "llama-3.1-405b", "qwen3-235b-a22b"):
        table(args, read_model(shape, args.cli))


LINKS = (1, 10, 25, 100)
LATENCIES = (5, 20, 100)


def table(args, model):
    """Decode, at each latency, and prompts, of which the latency is a small part."""
    print(f"\n**{model.name}**, Q4_K_M: {model.total_bytes() / 1e9:.0f} GB")
    for what, latencies in (("decode", LATENCIES), ("prompt", LATENCIES[1:2])):
        unit = " / ".join(str(us) for us in latencies) + " µs"
        print(f"\n| {what}, {unit} | GB per host |" + "".join(f" {gbit} Gbit/s |" for gbit in LINKS))
        print("|---|---:|" + "---:|" * len(LINKS))
        for split in ("rows", "layers"):
            for n in (8, 64) if (split, what) == ("layers", "decode") else (8, 16, 32, 64):
                cells = [speeds(args, model, gbit, latencies, n, split, what) for gbit in LINKS]
                print(f"| {n} hosts, {split} | {model.total_bytes() / n / 1e9:.1f} | {' | '.join(cells)} |")


def speeds(args, model, gbit, latencies, n, split, what):
    found = [predict_one(model, make_host(args), Link(gbit, us), args, n, split)[what] for us in latencies]
    return " / ".join(f"{x:.1f}" if what == "decode" else f"{x:.0f}" for x in found)


# ---- Arguments --------------------------------------------------------------
def numbers(text):
    return [int(n) for n in text.split(",")]


def add_host_options(p):
    p.add_argument("--host", help="what measure wrote about one rank (the machine of bench/notes)")
    p.add_argument("--exchange", help="take the exchanges of this file of measure instead")
    p.add_argument("--cores", type=int, default=16, help="without --host: cores of each host (16)")
    p.add_argument("--read", type=float, default=100.0, help="without --host: GB/s that these read at most (100)")
    p.add_argument("--ranks-per-core", type=int, default=1, help="ranks that take turns on a core (1)")
    p.add_argument("-b", "--batch", type=int, default=0, help="tokens of a pass at most (512; by layers 64)")
    p.add_argument("-d", "--depth", type=int, default=0, help="tokens before (0)")


def parse():
    about, text = __doc__.split("\n\n", 1)
    shapes = "Shapes, as Q4_K_M: " + ", ".join(SHAPES)
    parser = argparse.ArgumentParser(description=about, epilog=text + "\n" + shapes,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    p = commands.add_parser("predict", help="predict the speed on several ranks")
    p.add_argument("-m", "--model", required=True, help="GGUF file, or the name of a shape")
    p.add_argument("-n", "--ranks", type=numbers, default=[1, 2, 4, 8], help="numbers of ranks (1,2,4,8)")
    p.add_argument("--split", type=lambda s: s.split(","), default=["rows", "layers"], help="rows, layers or both")
    p.add_argument("--link", type=float, help="Gbit/s of a host's link, each way")
    p.add_argument("--latency", type=float, default=0.0, help="microseconds that the network adds to a message (0)")
    p.add_argument("-p", "--prompt", type=int, default=512, help="tokens of the prompt (512)")
    p.add_argument("--all-logits", action="store_true", help="rank 0 gets all logits, as in akunu-cli bench")
    p.add_argument("--json", action="store_true", help="print JSON, with the seconds of each part")
    add_host_options(p)
    p.set_defaults(run=predict)
    p = commands.add_parser("measure", help="measure what a rank and its exchanges take")
    p.add_argument("-m", "--model", required=True, help="GGUF file")
    p.add_argument("-t", "--threads", type=int, default=1, help="threads of a rank (1)")
    p.add_argument("--copies", type=int, default=1, help="ranks of a host, which measure at the same time (1)")
    p.add_argument("--mpirun", default="", help="command that starts the ranks of an exchange (none are measured)")
    p.add_argument("--program", help="where bench/exchange.c is compiled to, if it is not there: a path of all hosts")
    p.add_argument("--mpicc", default="mpicc", help="compiles bench/exchange.c (mpicc)")
    p.add_argument("-o", "--output", default="-", help="file to write (standard output)")
    p.set_defaults(run=measure)
    p = commands.add_parser("tables", help="print the tables of docs/scale.md")
    p.add_argument("-p", "--prompt", type=int, default=4096, help="tokens of the prompt (4096)")
    add_host_options(p)
    p.set_defaults(run=tables)
    for p in commands.choices.values():
        p.add_argument("--cli", default="akunu-cli", help="the program akunu-cli")
    return parser.parse_args()


if __name__ == "__main__":
    arguments = parse()
    arguments.run(arguments)
