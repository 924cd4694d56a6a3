"""Generating, chatting, embeddings and logits on the tiny models."""

import array
import os
import subprocess
import threading
import unittest
from pathlib import Path
from typing import Any, Dict, List
from unittest import mock

from support import DATA, ENCODER, MODEL, needs_numpy, numpy

import akunu
from akunu import _session

GREEDY: Dict[str, Any] = {"temperature": 0.0, "ignore_end": True}


def read_golden(name: str) -> Dict[str, List[int]]:
    """The tokens of a file of tests/data/models: a name, a count and ids on a line."""
    lines = (DATA / "models" / f"{name}.txt").read_text().splitlines()
    words = [line.split() for line in lines]
    return {word[0]: [int(n) for n in word[2:]] for word in words if word[0] != "leads"}


def read_npy(path: Path) -> List[float]:
    """The float32 numbers of a NumPy file, without NumPy."""
    data = path.read_bytes()
    start = 10 + int.from_bytes(data[8:10], "little")
    assert b"'<f4'" in data[:start]
    return array.array("f", data[start:]).tolist()


class WithModel(unittest.TestCase):
    model: akunu.Model
    session: akunu.Session

    @classmethod
    def setUpClass(cls) -> None:
        cls.model = akunu.Model(MODEL, cache=False, threads=1)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.model.close()

    def setUp(self) -> None:
        self.session = self.model.session(threads=1)
        self.addCleanup(self.session.close)

    def make(self, prompt: Any = "abc", n: int = 12) -> str:
        """A greedy text of a session of its own."""
        with self.model.session(threads=1) as session:
            return session.generate(prompt, max_tokens=n, **GREEDY).read()


class Generating(WithModel):
    def test_golden_tokens(self) -> None:
        for name in ("gemma", "qwen3", "lfm2"):
            golden = read_golden(name)
            expected = golden["greedy"]
            with akunu.Model(DATA / "models" / f"{name}.gguf", cache=False, threads=1) as model:
                with model.session(threads=1) as session:
                    made = session.generate(golden["prompt"], max_tokens=len(expected), **GREEDY)
                    made.read()
                    self.assertEqual(made.token_ids, expected, name)

    @unittest.skipUnless(os.environ.get("AK_CLI"), "AK_CLI names no program")
    def test_the_text_is_the_commands(self) -> None:
        command = [os.environ["AK_CLI"], "run", "-m", str(MODEL), "--raw", "-p", "abc"]
        command += ["-n", "12", "--temp", "0", "--no-display-prompt", "--no-cache", "--ignore-eos"]
        out = subprocess.run(command, capture_output=True, check=True, stdin=subprocess.DEVNULL)
        self.assertEqual(self.make(), out.stdout.decode("utf-8", "replace").rstrip("\n"))

    def test_pieces_make_the_text(self) -> None:
        made = self.session.generate("abc", max_tokens=12, **GREEDY)
        self.assertIsNone(made.stop_reason)
        self.assertEqual(repr(made), "<akunu.Generation '', read() makes the rest>")
        pieces = list(made)
        self.assertEqual(repr(made), f"<akunu.Generation {made.text!r}>")
        self.assertEqual("".join(pieces), made.text)
        self.assertEqual(made.text, self.make())
        self.assertEqual(made.stop_reason, "length")
        self.assertEqual(made.usage["n_generated"], 12)
        self.assertEqual(len(made.token_ids), 12)
        self.assertEqual(list(made), [])

    def test_a_seed_gives_the_same_text(self) -> None:
        first = self.session.generate("abc", max_tokens=24, temperature=1.5, top_k=0)
        text = first.read()
        again = self.session.generate(
            "abc", max_tokens=24, temperature=1.5, top_k=0, seed=first.seed
        )
        self.assertEqual(again.read(), text)
        other = self.session.generate("abc", max_tokens=24, temperature=1.5, top_k=0, seed=5)
        self.assertNotEqual(other.read(), text)

    def test_a_text_is_continued_from_the_kv_cache(self) -> None:
        self.session.generate("a long prompt that", max_tokens=8, **GREEDY).read()
        tokens = self.session.tokens
        made = self.session.generate([*tokens, 7], max_tokens=8, **GREEDY)
        text = made.read()
        self.assertEqual(made.usage["n_reused"], len(tokens))
        self.assertEqual(text, self.make([*tokens, 7], 8))
        made = self.session.generate("a long prompt", max_tokens=8, **GREEDY)
        self.assertEqual(made.read(), self.make("a long prompt", 8))
        self.assertGreater(made.usage["n_reused"], 0)

    def test_stop_texts(self) -> None:
        text = self.make(n=24)
        stop = text[5:8]
        made = self.session.generate("abc", max_tokens=24, stop=["never so", stop], **GREEDY)
        self.assertEqual(made.read(), text[: text.index(stop)])
        self.assertEqual(made.stop_reason, "stop")

    def test_grammars_and_schemas(self) -> None:
        made = self.session.generate("abc", grammar='root ::= "xy" [0-9]', seed=1)
        self.assertRegex(made.read(), r"^xy[0-9]$")
        self.assertEqual(made.stop_reason, "end")
        schema = {"enum": ["red", "green"]}
        self.assertIn(self.session.generate("abc", json_schema=schema).read(), ('"red"', '"green"'))
        grammar = akunu.Grammar("root ::= [a-c]")
        made = self.session.generate("abc", grammar=grammar)
        del grammar
        self.assertRegex(made.read(), "^[a-c]$")

    def test_other_parameters(self) -> None:
        made = self.session.generate(
            "abc",
            max_tokens=4,
            samplers=["top_k", "temperature"],
            logit_bias={75: float("inf")},
            dry_sequence_breakers=["\n"],
            speculation="none",
        )
        made.read()
        self.assertEqual(made.token_ids, [75] * 4)
        made = self.session.generate("abc", max_tokens=2, logit_bias={0: float("inf")})
        self.assertEqual((list(made), made.token_ids), (["!", "!"], [0, 0]))

    def test_a_control_token_is_no_piece(self) -> None:
        bias = {414: float("inf")}
        made = self.session.generate("abc", max_tokens=2, logit_bias=bias)
        self.assertEqual((list(made), made.token_ids), ([], [414, 414]))
        made = self.session.generate("abc", max_tokens=2, logit_bias=bias, special=True)
        self.assertEqual(list(made), ["<|im_start|>", "<|im_start|>"])

    def test_wrong_parameters(self) -> None:
        for options, error in (
            ({"temprature": 1.0}, TypeError),
            ({"temperature": "hot"}, TypeError),
            ({"top_k": 2**40}, ValueError),
            ({"seed": -1}, ValueError),
            ({"top_p": float("nan")}, akunu.ArgumentError),
            ({"samplers": ["none such"]}, akunu.ArgumentError),
            ({"grammar": "root ::=", "json_schema": {}}, ValueError),
            ({"speculation": "wild"}, ValueError),
            ({"stop": [""]}, akunu.ArgumentError),
            ({"logit_bias": {10**6: 1.0}}, akunu.ArgumentError),
        ):
            with self.assertRaises(error, msg=str(options)):
                self.session.generate("abc", max_tokens=2, **options).read()  # type: ignore
        self.assertEqual(self.session.generate("abc", max_tokens=12, **GREEDY).read(), self.make())

    def test_a_prompt_that_is_too_long(self) -> None:
        with self.model.session(context=64, threads=1) as session:
            with self.assertRaisesRegex(akunu.ContextError, "100.*64"):
                session.generate([7] * 100).read()
            made = session.generate([7] * 60, **GREEDY)
            made.read()
            self.assertEqual(made.stop_reason, "context")
        with self.assertRaises(akunu.AkunuError):
            self.session.generate([10**6]).read()
        with self.assertRaises(akunu.AkunuError):
            self.session.generate([]).read()


class OneAtATime(WithModel):
    def test_a_loop_that_is_left_frees_the_session(self) -> None:
        for _ in self.session.generate("abc", **GREEDY):
            break
        self.assertEqual(self.session.generate("abc", max_tokens=12, **GREEDY).read(), self.make())

    def test_a_generation_that_is_kept_is_busy_until_closed(self) -> None:
        made = self.session.generate("abc", **GREEDY)
        next(made)
        with self.assertRaisesRegex(akunu.BusyError, "close"):
            self.session.generate("abc", max_tokens=2).read()
        with made:
            next(made)
        self.assertEqual(made.stop_reason, "cancelled")
        self.assertEqual(list(made), [])
        self.assertEqual(self.session.generate("abc", max_tokens=12, **GREEDY).read(), self.make())

    def test_another_thread_cancels(self) -> None:
        made = self.session.generate("abc", **GREEDY)
        first = next(made)
        thread = threading.Thread(target=made.cancel)
        thread.start()
        thread.join()
        self.assertTrue(made.read().startswith(first))
        self.assertEqual(made.stop_reason, "cancelled")
        early = self.session.generate("abc", **GREEDY)
        early.cancel()
        self.assertEqual((early.read(), early.stop_reason), ("", "cancelled"))

    def test_closing_a_session_ends_its_generation(self) -> None:
        made = self.session.generate("abc", **GREEDY)
        next(made)
        self.session.close()
        made.read()
        self.assertEqual(made.stop_reason, "cancelled")
        with self.assertRaisesRegex(ValueError, "closed"):
            self.session.generate("abc").read()

    def test_threads_share_a_model(self) -> None:
        expected, found = self.make(n=24), [""] * 4

        def work(i: int) -> None:
            found[i] = self.make(n=24)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(found))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [expected] * len(found))


class Chatting(WithModel):
    def test_three_turns_keep_the_kv_cache(self) -> None:
        messages: List[Dict[str, Any]] = []
        for turn in range(3):
            messages.append({"role": "user", "content": f"question {turn}"})
            reply = self.session.chat(messages, max_tokens=8, **GREEDY)
            content = "".join(reply)
            self.assertEqual(reply.message["role"], "assistant")
            self.assertEqual(reply.message["content"] or "", reply.text)
            self.assertEqual(content, reply.text)
            if turn:
                self.assertGreater(reply.usage["n_reused"], 10)
            with self.model.session(threads=1) as fresh:
                alone = fresh.chat(messages, max_tokens=8, **GREEDY)
                self.assertEqual(alone.message, reply.message)
                self.assertEqual(alone.usage["n_reused"], 0)
            messages.append(reply.message)

    def test_tool_calls(self) -> None:
        parameters = {
            "type": "object",
            "properties": {"city": {"enum": ["Rome", "Oslo"]}},
            "required": ["city"],
            "additionalProperties": False,
        }
        function = {"name": "get_weather", "parameters": parameters}
        tools = [{"type": "function", "function": function}]
        messages = [{"role": "user", "content": "Weather?"}]
        reply = self.session.chat(messages, tools=tools, tool_choice="required", seed=3,
                                  parallel_tool_calls=False)
        events = list(reply.events())
        self.assertIn("call", [event.kind for event in events])
        (call,) = reply.message["tool_calls"]
        self.assertEqual(call["function"]["name"], "get_weather")
        self.assertIn("city", call["function"]["arguments"])
        self.assertEqual([e.text for e in events if e.kind == "call_end"],
                         [call["function"]["arguments"]])
        self.assertEqual([e.id for e in events if e.kind == "call"], [call["id"]])
        for parallel in (False, True):
            replies = [self.session.chat(messages, tools=tools, tool_choice="required", seed=seed,
                                         temperature=2.0, top_k=0, top_p=1.0, min_p=0.0,
                                         parallel_tool_calls=parallel) for seed in range(8)]
            most = max(len(reply.message["tool_calls"]) for reply in replies)
            self.assertEqual(most > 1, parallel)
        none = self.session.chat(messages, tools=tools, tool_choice="none", max_tokens=4, **GREEDY)
        self.assertNotIn("tool_calls", none.message)
        with self.assertRaises(akunu.AkunuError):
            self.session.chat(messages, tools=tools, tool_choice="no_such_tool")

    def test_what_makes_the_prompt_is_passed_on(self) -> None:
        class Asked(Exception):
            pass

        function = {"name": "f", "parameters": {"type": "object"}}
        given: Dict[str, Any] = {
            "tools": [{"type": "function", "function": function}],
            "documents": [{"title": "a", "text": "b"}],
            "template": "tool_use",
            "template_kwargs": {"enable_thinking": False},
        }
        messages = [{"role": "user", "content": "Hi"}]
        with mock.patch.object(self.model, "render", return_value="a") as render:
            with mock.patch.object(self.model, "template_text", side_effect=Asked) as text:
                with self.assertRaises(Asked):
                    self.session.chat(messages, **given)
        self.assertEqual(render.mock_calls, [mock.call(messages, **given)])
        self.assertEqual(text.mock_calls, [mock.call(name="tool_use", tools=True)])

    def test_a_schema_for_the_answer(self) -> None:
        messages = [{"role": "user", "content": "Color?"}]
        reply = self.session.chat(messages, json_schema={"enum": ["red"]})
        self.assertEqual(reply.message, {"role": "assistant", "content": '"red"'})


class Embedding(unittest.TestCase):
    def compare(self, rows: Any, pooling: str) -> None:
        expected = read_npy(ENCODER / f"{pooling}.npy")
        found = [float(x) for row in rows for x in row]
        self.assertEqual(len(found), len(expected))
        error = sum((a - b) ** 2 for a, b in zip(found, expected))
        self.assertLess(error / sum(b * b for b in expected), 1e-6)

    def test_golden_embeddings(self) -> None:
        lines = (ENCODER / "texts.txt").read_text().splitlines()
        texts = [[int(n) for n in line.split()] for line in lines]
        with akunu.Model(ENCODER / "model.gguf", cache=False) as model:
            with model.session(threads=1) as session:
                for pooling in ("mean", "cls", "last"):
                    rows = session.embed(texts, pooling=pooling, normalize="none")
                    self.compare(rows, pooling)
                    with mock.patch.object(_session, "find_numpy", lambda: None):
                        lists = session.embed(texts, pooling=pooling, normalize="none")
                    self.assertIsInstance(lists, list)
                    self.assertIsInstance(lists[0][0], float)
                    self.assertEqual([list(row) for row in rows], lists)
                with self.assertRaises(akunu.UnsupportedError):
                    session.generate([1, 2]).read()
                with self.assertRaises(akunu.ArgumentError):
                    session.embed([[]])
                with self.assertRaises(ValueError):
                    session.embed([[1]], pooling="max")

    def test_a_language_model(self) -> None:
        with akunu.Model(MODEL, cache=False) as model, model.session(threads=1) as session:
            session.generate("abc", max_tokens=4, **GREEDY).read()
            one = session.embed("abc", normalize="l2")
            self.assertEqual(len(one), model.info.width)
            self.assertAlmostEqual(sum(float(x) ** 2 for x in one), 1.0, places=4)
            self.assertEqual(list(session.embed(["abc", "x"], normalize="l2")[0]), list(one))
            self.assertEqual(session.tokens, [])
            self.assertEqual(len(session.embed([])), 0)
        with akunu.Model(MODEL, cache=False) as model:
            with model.session(threads=1, max_sequences=2) as session:
                session.generate("abc", max_tokens=4, **GREEDY).read()
                tokens = session.tokens
                self.assertEqual(list(session.embed("abc", normalize="l2")), list(one))
                self.assertEqual(session.tokens, tokens)


@needs_numpy
class Logits(WithModel):
    def test_golden_logits(self) -> None:
        path = DATA / "models" / "gemma"
        prompt = read_golden("gemma")["prompt"]
        expected = numpy.load(path.with_suffix(".npy"))
        with akunu.Model(path.with_suffix(".gguf"), cache=False, threads=1) as model:
            with model.session(threads=1) as session:
                found = session.logits(prompt, every=True)
                last = session.logits(prompt)
                self.assertEqual(found.shape, expected.shape)
                self.assertLess(((found - expected) ** 2).sum() / (expected**2).sum(), 1e-6)
                self.assertTrue((last == found[-1]).all())
                self.assertEqual(found.dtype, numpy.float32)

    def test_every_token_of_a_long_text(self) -> None:
        ids = [65 + i * 7 % 50 for i in range(150)]
        every = self.session.logits(ids, every=True)
        self.assertEqual(every.shape, (150, self.model.info.vocab_size))
        for n in 1, 63, 64, 65, 128, 129, 150:
            self.assertTrue((self.session.logits(ids[:n]) == every[n - 1]).all(), n)

    def test_every_token_after_another_text(self) -> None:
        expected = self.session.logits([70, 71, 72], every=True)
        self.session.generate("xyz", max_tokens=3, **GREEDY).read()
        self.assertTrue((self.session.logits([70, 71, 72], every=True) == expected).all())

    def test_the_view_and_its_lifetime(self) -> None:
        view = self.session.logits("abc")
        self.assertFalse(view.flags.writeable)
        self.assertFalse(view.flags.owndata)
        kept = view.copy()
        other = self.session.logits("xyz")
        self.assertFalse((other == kept).all())
        again = self.session.logits("abc")
        self.assertTrue((again == kept).all())
        self.session.close()
        del self.session
        self.assertTrue((again == kept).all())

    def test_sampling_by_hand(self) -> None:
        ids = self.model.tokenize("abc")
        start = len(ids)
        for _ in range(12):
            ids.append(int(self.session.logits(ids).argmax()))
        self.assertEqual(self.model.detokenize(ids[start:], continued=True), self.make())
        with self.assertRaises(ValueError):
            self.session.logits([])

    def test_without_numpy(self) -> None:
        with mock.patch.object(_session, "find_numpy", lambda: None):
            with self.assertRaisesRegex(ImportError, "pip install numpy"):
                self.session.logits("abc")


if __name__ == "__main__":
    unittest.main()
