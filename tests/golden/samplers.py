#!/usr/bin/env python3
"""What each sampler and several orders of them leave, and with what probability, for tests/engine/sample/test_samplers.c.

    samplers.py OUT/samplers.txt LIBLLAMA.so MODEL.gguf     (numpy, scipy)

The samplers are written here anew, in float64 and as plainly as possible: sorts instead of heaps, DRY by comparing every pair
of places. What they leave is then compared with llama.cpp's, whose vocabulary of MODEL (tests/data/model.gguf) also cuts the
sequence breakers of DRY. The file has these lines:
    logits NAME N         then N floats on one line
    case NAME LOGITS      followed by lines that belong to it
        set FIELD VALUE   a field of struct akunu_sampling_params
        bias TOKEN VALUE
        breaker HEX       one of DRY's sequence breakers; "breaker -": none at all
        accepted N ID …   tokens told before
        left N  ID P …    the probability of every token that may be drawn
        exact 0|1         1: these are the candidates of each draw, 0: a mixture (XTC takes its turn or not)
        chi2 N LIMIT      cells of ten or more expected draws of 100,000, the rest together one more; 1e-4 of honest samplers pass the limit
    trace KIND LOGITS     Mirostat and adaptive-p learn: set lines, then
        steps N           then N lines: a unit to draw with, the token, and what was learnt after it (mu; or sum and weight)
"""
import ctypes
import sys

import numpy as np
from scipy.stats import chi2

F = np.float32
DRAWS = 100000
DEFAULT = "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature"
LETTERS = dict(e="penalties", d="dry", s="top_n_sigma", k="top_k", y="typ_p", p="top_p", m="min_p", x="xtc", t="temperature", a="adaptive_p")
OFF = dict(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, repeat_penalty=1.0, repeat_last_n=64, presence_penalty=0.0, frequency_penalty=0.0,
           dynatemp_range=0.0, dynatemp_exponent=1.0, typical_p=1.0, top_n_sigma=-1.0, xtc_probability=0.0, xtc_threshold=0.1,
           dry_multiplier=0.0, dry_base=1.75, dry_allowed_length=2, dry_penalty_last_n=64, mirostat=0, mirostat_tau=5.0, mirostat_eta=0.1,
           adaptive_target=-1.0, adaptive_decay=0.9)
INTEGERS = ("top_k", "repeat_last_n", "dry_allowed_length", "dry_penalty_last_n", "mirostat")
ALL_ON = dict(temperature=0.9, top_k=30, top_p=0.95, min_p=0.02, repeat_penalty=1.1, presence_penalty=0.1, frequency_penalty=0.05,
              typical_p=0.97, top_n_sigma=2.5, xtc_probability=0.4, xtc_threshold=0.12, dry_multiplier=0.8, dynatemp_range=0.3, dynatemp_exponent=1.2)


def tables():
    rng = np.random.default_rng(20261122)
    ranks = rng.permutation(64)
    return {
        "zipf": (6 - 1.6 * np.log1p(ranks) + rng.normal(0, 0.4, 64)).astype("<f4"),
        "flat": rng.normal(0, 0.5, 40).astype("<f4"),
        "signs": rng.normal(-0.5, 2, 14).astype("<f4"),
        "wide": (4 - 0.9 * np.log1p(rng.permutation(300)) + rng.normal(0, 0.5, 300)).astype("<f4"),
        "words": (5 - 1.4 * np.log1p(rng.permutation(416)) + rng.normal(0, 0.3, 416)).astype("<f4"),
    }


# ---- the reference --------------------------------------------------------------------------------------------


def softmax(logits):
    w = np.exp(logits - logits.max())
    return w / w.sum()


def apart(values, limit, what):
    """No cut may fall where a rounding error decides."""
    assert np.min(np.abs(np.asarray(values) - limit)) > 2e-6, what


class State:
    """ids and logits of the candidates."""

    def __init__(self, logits):
        self.ids = np.arange(len(logits))
        self.x = logits.astype(np.float64)

    def keep(self, where):
        self.ids, self.x = self.ids[where], self.x[where]

    def best_first(self):
        return np.lexsort((self.ids, -self.x))


def penalties(s, p, accepted, _):
    if p["repeat_last_n"] == 0:
        return
    window = accepted if p["repeat_last_n"] < 0 else accepted[-p["repeat_last_n"]:]
    for i, token in enumerate(s.ids):
        count = window.count(token)
        if count:
            x = s.x[i]
            x = x * p["repeat_penalty"] if x <= 0 else x / p["repeat_penalty"]
            s.x[i] = x - count * p["frequency_penalty"] - p["presence_penalty"]


def dry(s, p, accepted, breakers):
    """The next token t goes on with a repetition of length n where the context's last n tokens are somewhere before, with t behind."""
    if p["dry_multiplier"] == 0 or p["dry_penalty_last_n"] == 0:
        return
    x = accepted[-p["dry_penalty_last_n"]:]
    allowed = p["dry_allowed_length"]
    if len(x) <= allowed:
        return
    limit = len(x)
    for begin in range(len(x) - 1, -1, -1):  # the last place at which a breaker begins
        ends = [1 + len(tail) for head, tail in breakers if head == x[begin] and x[begin + 1:begin + 1 + len(tail)] == tail]
        if ends:
            limit = len(x) - begin - max(ends)
            break
    if limit < allowed:
        return
    for i, token in enumerate(s.ids):
        longest = -1
        for at in range(1, len(x)):
            if x[at] == token:
                n = 0
                while n < at and x[at - 1 - n] == x[len(x) - 1 - n]:
                    n += 1
                longest = max(longest, min(n, limit))
        if longest >= allowed and not any(head == token and not tail for head, tail in breakers):
            s.x[i] -= p["dry_multiplier"] * p["dry_base"] ** (longest - allowed)


def top_n_sigma(s, p, *_):
    if p["top_n_sigma"] > 0:
        limit = s.x.max() - p["top_n_sigma"] * s.x.std()
        apart(s.x, limit, "top_n_sigma")
        s.keep(s.x >= limit)


def top_k(s, p, *_):
    if p["top_k"] > 0:
        s.keep(s.best_first()[:p["top_k"]])


def typ_p(s, p, *_):
    if p["typical_p"] >= 1:
        return
    prob = softmax(s.x)
    entropy = -(prob * np.log(prob)).sum()
    order = np.lexsort((s.ids, np.abs(-np.log(prob) - entropy)))
    sums = np.cumsum(prob[order])
    apart(sums, p["typical_p"], "typ_p")
    s.keep(order[:1 + np.count_nonzero(sums <= p["typical_p"])])


def top_p(s, p, *_):
    if p["top_p"] >= 1:
        return
    order = s.best_first()
    sums = np.cumsum(softmax(s.x)[order])
    apart(sums, p["top_p"], "top_p")
    s.keep(order[:1 + np.count_nonzero(sums < p["top_p"])])


def min_p(s, p, *_):
    if p["min_p"] > 0:
        prob = softmax(s.x)
        apart(prob, p["min_p"] * prob.max(), "min_p")
        s.keep(prob >= p["min_p"] * prob.max())


def xtc(s, p, *_):
    prob = softmax(s.x)
    apart(prob, p["xtc_threshold"], "xtc")
    above = [i for i in s.best_first() if prob[i] >= p["xtc_threshold"]]
    s.keep([i for i in range(len(s.x)) if i not in above[:-1]])


def temperature(s, p, *_):
    t = p["temperature"]
    if p["dynatemp_range"] > 0:
        if len(s.x) == 1:
            return
        prob = softmax(s.x)
        part = -(prob * np.log(prob)).sum() / np.log(len(prob))
        low, high = max(0.0, t - p["dynatemp_range"]), t + p["dynatemp_range"]
        t = low + (high - low) * part ** p["dynatemp_exponent"]
    s.x = s.x / t


def adaptive(prob, target):
    d = np.abs(prob - target) / 0.3
    return softmax(5 - 10 * d * d / (1 + d))


def zipf_k(x, mu, n_vocab):
    x = np.sort(x)[::-1][:100]
    t = np.log(np.arange(2, len(x) + 1) / np.arange(1, len(x)))
    b = x[:-1] - x[1:]
    exponent = (t * b).sum() / (t * t).sum()
    e = exponent - 1
    return max(1, int((e * 2 ** mu / (1 - n_vocab ** -e)) ** (1 / exponent)))


def mirostat(s, p, mu, n_vocab):
    if p["mirostat"] == 1:
        s.keep(s.best_first()[:zipf_k(s.x, mu, n_vocab)])
        return
    bits = -np.log2(softmax(s.x))
    apart(bits, mu, "mirostat")
    s.keep(bits <= max(mu, bits.min()))


SAMPLERS = dict(penalties=penalties, dry=dry, top_n_sigma=top_n_sigma, top_k=top_k, typ_p=typ_p, top_p=top_p, min_p=min_p, temperature=temperature)


def steps_of(p):
    if p.get("sampler_seq") is not None:
        return [LETTERS[c] for c in p["sampler_seq"]]
    return [name for name in p.get("samplers", DEFAULT).split(";") if name]


def distribution(logits, p, accepted, bias, breakers):
    """{id: probability} of the next token, XTC's two ways together."""

    def go_on(s, steps):
        for i, step in enumerate(steps):
            if step == "adaptive_p":
                continue
            if step != "xtc":
                SAMPLERS[step](s, p, accepted, breakers)
            elif p["xtc_probability"] > 0 and p["xtc_threshold"] <= 0.5 and len(s.x) > 1:
                other = State(np.zeros(0))
                other.ids, other.x = s.ids.copy(), s.x.copy()
                xtc(other, p)
                with_it, without = go_on(other, steps[i + 1:]), go_on(s, steps[i + 1:])
                q = min(p["xtc_probability"], 1.0)
                both = {t: (1 - q) * v for t, v in without.items() if q < 1}
                for t, v in with_it.items():
                    both[t] = both.get(t, 0.0) + q * v
                return both
        prob = softmax(s.x)
        if "adaptive_p" in steps and p["adaptive_target"] >= 0:
            prob = adaptive(prob, p["adaptive_target"])
        return dict(zip(s.ids.tolist(), prob))

    s = State(logits)
    for token, value in bias:
        s.x[token] += value
    s.keep(s.x > -np.inf)
    if p["mirostat"]:
        temperature(s, dict(p, dynatemp_range=0.0))
        mirostat(s, p, 2 * p["mirostat_tau"], len(logits))
        return dict(zip(s.ids.tolist(), softmax(s.x)))
    return go_on(s, steps_of(p))


def trace(logits, p, units):
    lines, mu = [], 2 * p["mirostat_tau"]
    weight = 1 / (1 - p["adaptive_decay"])
    total = p["adaptive_target"] * weight
    for unit in units:
        s = State(logits)
        if p["mirostat"]:
            mirostat(s, p, mu, len(logits))
            prob = softmax(s.x)
            at = int(np.searchsorted(np.cumsum(prob), unit, side="right"))
            mu -= p["mirostat_eta"] * (-np.log2(prob[at]) - p["mirostat_tau"])
            lines.append(f"{unit!r} {s.ids[at]} {mu:.12g}")
        else:
            prob = softmax(s.x)
            q = adaptive(prob, min(max(2 * p["adaptive_target"] - total / weight, 0.0), 1.0))
            at = int(np.searchsorted(np.cumsum(q), unit, side="right"))
            total, weight = prob[at] + p["adaptive_decay"] * total, 1 + p["adaptive_decay"] * weight
            lines.append(f"{unit!r} {s.ids[at]} {total:.12g} {weight:.12g}")
    return lines


# ---- llama.cpp ------------------------------------------------------------------------------------------------


class Token(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int32), ("logit", ctypes.c_float), ("p", ctypes.c_float)]


class Tokens(ctypes.Structure):
    _fields_ = [("data", ctypes.POINTER(Token)), ("size", ctypes.c_size_t), ("selected", ctypes.c_int64), ("sorted", ctypes.c_bool)]


class Bias(ctypes.Structure):
    _fields_ = [("token", ctypes.c_int32), ("bias", ctypes.c_float)]


class ModelParams(ctypes.Structure):
    _fields_ = [("before", ctypes.c_char * 64), ("vocab_only", ctypes.c_bool), ("behind", ctypes.c_char * 7)]


class Llama:
    def __init__(self, path, model):
        self.lib = lib = ctypes.CDLL(path)
        for name in ("penalties", "dry", "top_n_sigma", "top_k", "typical", "top_p", "min_p", "xtc", "temp_ext", "temp", "dist", "mirostat",
                     "mirostat_v2", "adaptive_p", "logit_bias"):
            getattr(lib, "llama_sampler_init_" + name).restype = ctypes.c_void_p
        lib.llama_model_default_params.restype = ModelParams
        for name in ("llama_model_load_from_file", "llama_model_get_vocab"):
            getattr(lib, name).restype = ctypes.c_void_p
        params = lib.llama_model_default_params()
        params.vocab_only = True
        self.model = lib.llama_model_load_from_file(model.encode(), params)
        self.vocab = ctypes.c_void_p(lib.llama_model_get_vocab(ctypes.c_void_p(self.model)))
        self.n_vocab = lib.llama_vocab_n_tokens(self.vocab)

    def tokenize(self, text):
        out = (ctypes.c_int32 * 100)()
        n = self.lib.llama_tokenize(self.vocab, text, len(text), out, 100, False, False)
        return list(out[:n])

    def piece(self, token):
        out = ctypes.create_string_buffer(200)
        n = self.lib.llama_token_to_piece(self.vocab, token, out, 200, 0, True)
        return out.raw[:n]

    def breakers(self, strings):
        """(head, tail) for every token whose text has a breaker or ends in the beginning of one."""
        found = []
        for token in range(self.n_vocab):
            text = self.piece(token)
            for string in strings:
                if string in text:
                    found.append((token, []))
                    continue
                for n in range(1, len(string)):
                    if text.endswith(string[:n]):
                        found.append((token, self.tokenize(string[n:])[:20]))
        return found

    def step(self, name, p, n, strings):
        f, lib = (lambda key: ctypes.c_float(p[key])), self.lib
        one = ctypes.c_size_t(0)
        if name == "penalties":
            last_n = 10**6 if p["repeat_last_n"] < 0 else p["repeat_last_n"]
            return lib.llama_sampler_init_penalties(n, last_n, f("repeat_penalty"), f("frequency_penalty"), f("presence_penalty"))
        if name == "dry":
            array = (ctypes.c_char_p * len(strings))(*strings)
            return lib.llama_sampler_init_dry(self.vocab, f("dry_multiplier"), f("dry_base"), p["dry_allowed_length"],
                                              p["dry_penalty_last_n"], array, ctypes.c_size_t(len(strings)))
        if name == "top_n_sigma":
            return lib.llama_sampler_init_top_n_sigma(f("top_n_sigma"))
        if name == "top_k":
            return lib.llama_sampler_init_top_k(p["top_k"])
        if name == "typ_p":
            return lib.llama_sampler_init_typical(f("typical_p"), one)
        if name == "top_p":
            return lib.llama_sampler_init_top_p(f("top_p"), one)
        if name == "min_p":
            return lib.llama_sampler_init_min_p(f("min_p"), one)
        if name == "xtc":
            return lib.llama_sampler_init_xtc(f("xtc_probability"), f("xtc_threshold"), one, ctypes.c_uint32(1))
        return lib.llama_sampler_init_temp_ext(f("temperature"), f("dynatemp_range"), f("dynatemp_exponent"))

    def distribution(self, logits, p, accepted, bias, strings):
        n, f, lib, seed = len(logits), ctypes.c_float, self.lib, ctypes.c_uint32(1)
        chain = [lib.llama_sampler_init_logit_bias(n, len(bias), (Bias * len(bias))(*[Bias(t, v) for t, v in bias]))] if bias else []
        if p["mirostat"]:
            chain.append(lib.llama_sampler_init_temp(f(p["temperature"])))
            tau, eta = f(p["mirostat_tau"]), f(p["mirostat_eta"])
            chain.append(lib.llama_sampler_init_mirostat(n, seed, tau, eta, 100) if p["mirostat"] == 1 else
                         lib.llama_sampler_init_mirostat_v2(seed, tau, eta))
        else:
            names = steps_of(p)
            chain += [self.step(name, p, n, strings) for name in names if name != "adaptive_p"]
            chain.append(lib.llama_sampler_init_adaptive_p(f(p["adaptive_target"]), f(p["adaptive_decay"]), seed) if "adaptive_p" in names else
                         lib.llama_sampler_init_dist(seed))
        array = (Token * n)(*[Token(i, float(v), 0.0) for i, v in enumerate(logits)])
        tokens = Tokens(array, n, -1, False)
        for sampler in chain:
            for token in accepted:
                lib.llama_sampler_accept(ctypes.c_void_p(sampler), token)
            lib.llama_sampler_apply(ctypes.c_void_p(sampler), ctypes.byref(tokens))
        return {tokens.data[i].id: tokens.data[i].p for i in range(tokens.size) if tokens.data[i].p > 0}


# ---- cases ----------------------------------------------------------------------------------------------------

# the end is there before, with ';' behind: how far back it may be looked for is what breakers say
TEXT = b'a: the time of the\n"the user said; and "the time of the\n"the user said'


def cases(llama):
    """(name, logits, parameters, accepted, bias, breakers)"""
    words = llama.tokenize(TEXT)
    likely = [(token, 6.0) for token in llama.tokenize(b";")]
    rng = np.random.default_rng(7)
    loop = [3, 9, 4, 1, 3, 9, 4, 2, 3, 9, 4]
    noise = rng.integers(0, 6, 60).tolist()
    yield "plain", "zipf", dict(), [], [], []
    yield "temperature", "zipf", dict(temperature=0.7), [], [], []
    yield "temperature-hot", "flat", dict(temperature=1.9), [], [], []
    yield "dynamic", "zipf", dict(temperature=0.9, dynatemp_range=0.5), [], [], []
    yield "dynamic-exponent", "signs", dict(temperature=0.6, dynatemp_range=0.8, dynatemp_exponent=2.5), [], [], []
    yield "dynamic-last", "zipf", dict(temperature=1.0, dynatemp_range=0.6, top_k=12, samplers="temperature;top_k"), [], [], []
    yield "top-k", "zipf", dict(top_k=9), [], [], []
    yield "top-k-wide", "wide", dict(top_k=50), [], [], []
    yield "top-p", "zipf", dict(top_p=0.8), [], [], []
    yield "top-p-wide", "wide", dict(top_p=0.6), [], [], []
    yield "min-p", "zipf", dict(min_p=0.07), [], [], []
    yield "typical", "zipf", dict(typical_p=0.7), [], [], []
    yield "typical-flat", "flat", dict(typical_p=0.4), [], [], []
    yield "typical-wide", "wide", dict(typical_p=0.3), [], [], []
    yield "sigma", "zipf", dict(top_n_sigma=1.0), [], [], []
    yield "sigma-flat", "flat", dict(top_n_sigma=2.0), [], [], []
    yield "xtc-always", "zipf", dict(xtc_probability=1.0, xtc_threshold=0.08), [], [], []
    yield "xtc-half", "zipf", dict(xtc_probability=0.5, xtc_threshold=0.1), [], [], []
    yield "xtc-rarely", "signs", dict(xtc_probability=0.2, xtc_threshold=0.05), [], [], []
    yield "xtc-nothing", "flat", dict(xtc_probability=1.0, xtc_threshold=0.4), [], [], []
    yield "repeat", "signs", dict(repeat_penalty=1.6, repeat_last_n=-1), noise, [], []
    yield "repeat-window", "signs", dict(repeat_penalty=1.4, repeat_last_n=5), noise, [], []
    yield "presence", "signs", dict(presence_penalty=1.1, repeat_last_n=7), noise, [], []
    yield "frequency", "signs", dict(frequency_penalty=0.3, repeat_last_n=20), noise, [], []
    yield "penalties-negative", "signs", dict(repeat_penalty=0.8, presence_penalty=-0.4, frequency_penalty=-0.1), noise, [], []
    yield "dry", "zipf", dict(dry_multiplier=0.8), loop, [], []
    yield "dry-base", "zipf", dict(dry_multiplier=0.3, dry_base=2.5, dry_allowed_length=1), loop, [], []
    yield "dry-window", "zipf", dict(dry_multiplier=0.8, dry_penalty_last_n=7), loop, [], []
    yield "dry-noise", "signs", dict(dry_multiplier=0.4, dry_base=1.3, dry_allowed_length=0), noise, [], []
    yield "dry-long", "signs", dict(dry_multiplier=0.01, dry_base=1.2, dry_penalty_last_n=60), [0, 1] * 40, [], []
    yield "dry-flat-base", "signs", dict(dry_multiplier=0.9, dry_base=1.0), [5, 2, 7, 5, 2], [], []
    repeats = dict(dry_multiplier=0.02, dry_base=1.5, dry_allowed_length=1, top_k=50)
    yield "dry-unbroken", "words", repeats, words, likely, []
    yield "dry-breakers", "words", repeats, words, likely, [b"\n", b":", b'"', b"*"]
    yield "dry-long-breaker", "words", repeats, words, likely, [b"e\n\"the us"]
    yield "dry-inner-breaker", "words", repeats, words, likely, [b"e ti", b"me of"]
    yield "dry-single-breaker", "words", repeats, words, likely, [b";"]
    yield "bias", "signs", dict(), [], [(3, 1.5), (0, -2.0), (3, 0.25), (7, -np.inf)], []
    yield "bias-forced", "zipf", dict(top_p=0.9), [], [(11, 30.0)], []
    yield "mirostat-1", "wide", dict(mirostat=1, mirostat_tau=2.0, mirostat_eta=0.0, temperature=0.9), [], [], []
    yield "mirostat-2", "wide", dict(mirostat=2, mirostat_tau=2.5, mirostat_eta=0.0, temperature=0.9), [], [], []
    yield "mirostat-2-low", "zipf", dict(mirostat=2, mirostat_tau=0.2, mirostat_eta=0.0, top_k=3, repeat_penalty=2.0), [1, 2, 3], [], []
    yield "adaptive", "zipf", dict(adaptive_target=0.3, min_p=0.02, samplers="min_p;adaptive_p"), [], [], []
    yield "adaptive-low", "zipf", dict(adaptive_target=0.05, temperature=0.8, samplers="adaptive_p;temperature"), [], [], []
    yield "adaptive-off", "zipf", dict(adaptive_target=-1.0, top_k=8, sampler_seq="ka"), [], [], []
    yield "defaults", "zipf", dict(temperature=0.8, top_k=40, top_p=0.95, min_p=0.05), [], [], []
    yield "all", "zipf", ALL_ON, loop, [], []
    yield "all-reversed", "zipf", dict(ALL_ON, samplers=";".join(reversed(DEFAULT.split(";")))), loop, [], []
    yield "hot-first", "zipf", dict(temperature=2.0, top_p=0.8, sampler_seq="tp"), [], [], []
    yield "hot-last", "zipf", dict(temperature=2.0, top_p=0.8, sampler_seq="pt"), [], [], []
    yield "only-named", "zipf", dict(temperature=0.3, top_k=4, top_p=0.5, min_p=0.3, samplers="top_k"), [], [], []
    yield "none-named", "flat", dict(temperature=0.3, top_k=4, top_p=0.5, samplers=""), [], [], []
    yield "late-penalties", "zipf", dict(top_k=10, repeat_penalty=1.5, presence_penalty=0.5, samplers="top_k;penalties"), loop, [], []
    yield "late-dry", "zipf", dict(top_p=0.9, dry_multiplier=1.5, temperature=1.2, sampler_seq="tpd"), loop, [], []
    yield "penalties-scaled", "signs", dict(temperature=0.5, repeat_penalty=1.5, repeat_last_n=9, sampler_seq="te"), noise, [], []
    yield "typical-first", "wide", dict(typical_p=0.5, top_k=20, top_p=0.9, sampler_seq="ykp"), [], [], []
    yield "sigma-late", "wide", dict(top_n_sigma=1.0, min_p=0.1, sampler_seq="ms"), [], [], []
    yield "xtc-first", "zipf", dict(xtc_probability=0.6, xtc_threshold=0.1, top_k=5, sampler_seq="xk"), [], [], []
    yield "twice", "zipf", dict(top_p=0.9, temperature=1.5, sampler_seq="ptpt"), [], [], []


TRACES = [("mirostat", "wide", dict(mirostat=1, mirostat_tau=3.0, mirostat_eta=0.1)), ("mirostat", "wide", dict(mirostat=2, mirostat_tau=3.0, mirostat_eta=0.1)),
          ("mirostat", "zipf", dict(mirostat=2, mirostat_tau=1.0, mirostat_eta=0.5)), ("adaptive", "zipf", dict(adaptive_target=0.2, adaptive_decay=0.8)),
          ("adaptive", "flat", dict(adaptive_target=0.05, adaptive_decay=0.99))]


def agree(name, ours, theirs):
    ours = {t: v for t, v in ours.items() if v > 1e-12}
    theirs = {t: v for t, v in theirs.items() if v > 1e-12}
    assert set(ours) == set(theirs), (name, sorted(set(ours) ^ set(theirs)))
    worst = max(abs(ours[t] - theirs[t]) for t in ours)
    assert worst < 3e-5, (name, worst)


def cells(left):
    counted = [p * DRAWS for p in left.values() if p * DRAWS >= 10]
    rest = DRAWS - sum(counted)
    return len(counted) + (rest >= 10)


def write_sets(out, params):
    for key, value in params.items():
        print("set", key, value, file=out)


def rounded(params):
    return {k: v if k in INTEGERS or isinstance(v, str) else float(F(v)) for k, v in params.items()}


def main():
    out = open(sys.argv[1], "w", encoding="ascii")
    llama = Llama(sys.argv[2], sys.argv[3])
    logits = tables()
    for name, values in logits.items():
        print("logits", name, len(values), file=out)
        print(*[f"{v:.9g}" for v in values], file=out)
    for name, table, params, accepted, bias, strings in cases(llama):
        p = dict(OFF, **rounded(params))
        accepted = [int(t) for t in accepted]
        left = distribution(logits[table], p, accepted, bias, llama.breakers(strings))
        mixed = p["xtc_probability"] > 0 and p["xtc_probability"] < 1
        if not mixed:
            agree(name, left, llama.distribution(logits[table], p, accepted, bias, strings))
        else:  # llama.cpp's two ways, mixed
            never, always = (llama.distribution(logits[table], dict(p, xtc_probability=q), accepted, bias, strings) for q in (0.0, 1.0))
            q = p["xtc_probability"]
            agree(name, left, {t: (1 - q) * never.get(t, 0.0) + q * always.get(t, 0.0) for t in set(never) | set(always)})
        print("case", name, table, file=out)
        write_sets(out, params)
        for token, value in bias:
            print("bias", token, value, file=out)
        for string in strings:
            print("breaker", string.hex(), file=out)
        if not strings:
            print("breaker -", file=out)
        print("accepted", len(accepted), *accepted, file=out)
        print("left", len(left), *[f"{t} {v:.8g}" for t, v in sorted(left.items())], file=out)
        print("exact", int(not mixed), file=out)
        n = cells(left)
        print(f"chi2 {n} {chi2.isf(1e-4, max(n - 1, 1)):.3f}", file=out)
    units = np.random.default_rng(3).random(40).round(6).tolist()
    for kind, table, params in TRACES:
        print("trace", kind, table, file=out)
        write_sets(out, params)
        lines = trace(logits[table], dict(OFF, **rounded(params)), units)
        print("steps", len(lines), *lines, sep="\n", file=out)
    out.close()


main()
