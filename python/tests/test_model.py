"""Models, tokens, grammars, templates, and how failures come."""

import gc
import pickle
import threading
import unittest
from unittest import mock
from typing import List, Tuple

from support import DATA, MODEL, run_python

import akunu


class Loading(unittest.TestCase):
    def test_info_is_the_files(self) -> None:
        with akunu.Model(MODEL, cache=False) as model:
            self.assertEqual(model.info.architecture, "qwen2")
            self.assertEqual(model.info.name, "qwen2-tied-bf16")
            self.assertEqual(model.info.format, "gguf")
            self.assertFalse(model.info.encoder)
            self.assertEqual(model.info.pooling, "last")
        self.assertRegex(akunu.version(), r"^\d+\.\d+\.\d+$")
        self.assertIn("akunu", repr(model))

    def test_progress_and_log_run_in_the_callers_thread(self) -> None:
        stages: List[Tuple[str, float, int]] = []
        lines: List[Tuple[str, str]] = []
        model = akunu.Model(
            MODEL,
            cache=False,
            progress=lambda stage, part: stages.append((stage, part, threading.get_ident())),
            log=lambda level, line: lines.append((level, line)),
        )
        model.close()
        self.assertEqual(stages[-1], ("ready", 1.0, threading.get_ident()))
        self.assertEqual(lines, [])

    def test_log_lines_come_in_the_callers_thread(self) -> None:
        lines: List[Tuple[str, str, int]] = []
        with akunu.Model(MODEL, cache=False) as model, model.session(
            context=64,
            log=lambda level, line: lines.append((level, line, threading.get_ident())),
        ):
            self.assertEqual(len(lines), 1)
            level, line, thread = lines[0]
            self.assertEqual((level, thread), ("info", threading.get_ident()))
            self.assertRegex(line, r"^context: 64 tokens, ")

    def test_progress_that_is_false_cancels(self) -> None:
        with self.assertRaises(akunu.CancelledError) as caught:
            akunu.Model(MODEL, progress=lambda stage, part: stage != "config")
        self.assertEqual(caught.exception.status, akunu.Status.CANCELLED)

    def test_an_exception_of_progress_is_raised_by_the_call(self) -> None:
        def fail(stage: str, part: float) -> None:
            raise ZeroDivisionError(stage)

        with self.assertRaises(ZeroDivisionError):
            akunu.Model(MODEL, progress=fail)

    def test_overrides(self) -> None:
        with akunu.Model(MODEL, cache=False, override_kv={"general.name": "other"}) as model:
            self.assertEqual(model.info.name, "other")
        with self.assertRaises(TypeError):
            akunu.Model(MODEL, override_kv={"general.name": None})  # type: ignore[dict-item]

    def test_failures(self) -> None:
        with self.assertRaisesRegex(akunu.AkunuError, "nowhere.gguf") as caught:
            akunu.Model("/nowhere.gguf")
        self.assertIn(caught.exception.status, (akunu.Status.FORMAT, akunu.Status.IO))
        with self.assertRaises(akunu.FormatError):
            akunu.Model(DATA / "samplers.txt")
        with self.assertRaisesRegex(akunu.ArgumentError, "no-such-cpu") as argument:
            akunu.Model(MODEL, cpu="no-such-cpu")
        self.assertIsInstance(argument.exception, ValueError)
        with self.assertRaisesRegex(ValueError, "NUL"):
            akunu.Model("a\0b")
        with self.assertRaisesRegex(ValueError, "'fast'.*'own'"):
            akunu.Model(MODEL, prefill="fast")
        with self.assertRaisesRegex(ValueError, "n_threads.*out of range"):
            akunu.Model(MODEL, threads=-1)
        with self.assertRaises(TypeError):
            akunu.Model(7)  # type: ignore[arg-type]

    def test_a_closed_model_says_so(self) -> None:
        model = akunu.Model(MODEL, cache=False)
        model.close()
        model.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            model.tokenize("abc")
        with self.assertRaisesRegex(ValueError, "closed"):
            model.session()

    def test_errors_survive_pickling(self) -> None:
        error = akunu.ContextError("too long", akunu.Status.CONTEXT)
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(again), again.status), ("too long", akunu.Status.CONTEXT))
        self.assertTrue(issubclass(akunu.OutOfMemoryError, MemoryError))

    def test_out_of_memory_is_a_memory_error(self) -> None:
        with akunu.Model(MODEL, cache=False) as model:
            try:
                model.session(context=2**31, k_type="f32", v_type="f32", max_sequences=1)
            except akunu.AkunuError as error:
                self.assertIsInstance(error, (MemoryError, ValueError, akunu.ContextError))


class Text(unittest.TestCase):
    model: akunu.Model

    @classmethod
    def setUpClass(cls) -> None:
        cls.model = akunu.Model(MODEL, cache=False)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.model.close()

    def test_text_to_tokens_and_back(self) -> None:
        for text in ("", "Hello, world", "naïve 日本語 \0 x" * 50):
            ids = self.model.tokenize(text)
            self.assertEqual(self.model.detokenize(ids), text)
        self.assertEqual(self.model.tokenize(b"abc"), self.model.tokenize("abc"))

    def test_control_tokens_are_read_and_written_on_request(self) -> None:
        self.assertEqual(self.model.tokenize("<|im_end|>a"), [415, 64])
        plain = self.model.tokenize("<|im_end|>a", parse_special=False)
        self.assertGreater(len(plain), 2)
        self.assertNotIn(415, plain)
        self.assertEqual(self.model.detokenize(plain), "<|im_end|>a")
        self.assertEqual(self.model.detokenize([415, 64]), "<|im_end|>a")
        self.assertEqual(self.model.detokenize([415, 64], skip_special=True), "a")
        self.assertTrue(self.model.is_end(415))
        self.assertTrue(self.model.is_control(415))
        self.assertFalse(self.model.is_control(64))

    def test_a_chat_has_one_beginning_token(self) -> None:
        self.assertIsNone(self.model.bos)
        self.assertEqual(self.model.tokenize_chat("ab"), [64, 65])
        keys = {"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.bos_token_id": 1}
        with akunu.Model(MODEL, cache=False, override_kv=keys) as model:
            self.assertEqual(model.bos, 1)
            self.assertEqual(model.tokenize("ab"), [1, 64, 65])
            self.assertEqual(model.tokenize("ab", add_special=False), [64, 65])
            self.assertEqual(model.tokenize_chat("ab"), [1, 64, 65])
            self.assertEqual(model.tokenize_chat('"ab'), [1, 64, 65])
        keys = {"tokenizer.ggml.bos_token_id": 0}
        with akunu.Model(MODEL, cache=False, override_kv=keys) as model:
            self.assertEqual(model.bos, 0)

    def test_bad_tokens(self) -> None:
        with self.assertRaises(akunu.ArgumentError):
            self.model.detokenize([10**6])
        with self.assertRaises(OverflowError):
            self.model.detokenize([2**40])
        with self.assertRaises(TypeError):
            self.model.detokenize(["a"])  # type: ignore[list-item]
        with self.assertRaises(TypeError):
            self.model.detokenize(b"abcd")

    def test_a_template_renders(self) -> None:
        prompt = self.model.render([{"role": "user", "content": "Hi"}])
        self.assertEqual(prompt, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
        prompt = self.model.render([{"role": "user", "content": "Hi"}], add_generation_prompt=False)
        self.assertTrue(prompt.endswith("<|im_end|>\n"))
        source = self.model.template_text()
        assert source is not None
        self.assertTrue(source.startswith("{% for m in messages %}<|im_start|>"), source)
        self.assertIsNone(self.model.template_text(name="nothing-like-it"))
        with self.assertRaises(akunu.AkunuError):
            self.model.render([{"role": "user"}, 7])  # type: ignore[list-item]

    def test_a_rendered_text_is_freed(self) -> None:
        from akunu import _model

        free = mock.Mock(wraps=_model.lib.akunu_text_free)
        with mock.patch.object(_model.lib, "akunu_text_free", free):
            self.model.render([{"role": "user", "content": "Hi"}])
        self.assertEqual(free.call_count, 1)

    def test_grammars(self) -> None:
        grammar = akunu.Grammar('root ::= "a"+')
        self.assertTrue(grammar.allows("aaa"))
        self.assertFalse(grammar.allows("ab"))
        schema = akunu.Grammar.from_schema({"enum": ["x", 7]})
        self.assertTrue(schema.allows("7"))
        self.assertFalse(schema.allows("8"))
        with self.assertRaisesRegex(akunu.AkunuError, "^1:"):
            akunu.Grammar('root ::= "a')
        with self.assertRaises(akunu.AkunuError):
            akunu.Grammar.from_schema("[")

    def test_what_is_dropped_is_freed(self) -> None:
        gc.disable()
        try:
            from akunu import _handle

            freed: List[int] = []
            handle = _handle.Handle(7, freed.append, "test")
            del handle
            self.assertEqual(freed, [7])
        finally:
            gc.enable()


class Library(unittest.TestCase):
    """What an import says when the library is missing or another."""

    def test_no_library(self) -> None:
        code, _, errors = run_python("import akunu", environment={"AKUNU_LIBRARY": "/none.so"})
        self.assertEqual(code, 1)
        self.assertIn("ImportError", errors)
        self.assertIn("/none.so", errors)
        self.assertIn("make install", errors)

    def test_a_library_that_is_none_of_ours(self) -> None:
        code, _, errors = run_python("import akunu", environment={"AKUNU_LIBRARY": "libc.so.6"})
        self.assertEqual(code, 1)
        self.assertIn("akunu_version", errors)

    def test_another_version(self) -> None:
        program = (
            "import os, sys, types\n"
            "here = os.path.join(os.environ['PYTHONPATH'], 'akunu')\n"
            "package = types.ModuleType('akunu'); package.__path__ = [here]\n"
            "sys.modules['akunu'] = package\n"
            "import akunu._abi as abi\n"
            "abi.AKUNU_VERSION_MINOR = 99\n"
            "import akunu._library\n"
        )
        code, _, errors = run_python(program)
        self.assertEqual(code, 1)
        self.assertRegex(errors, rf"is akunu {akunu.version()}, and this Python package needs 0")

    def test_an_older_library_lacks_functions(self) -> None:
        program = (
            "import os, sys, types\n"
            "here = os.path.join(os.environ['PYTHONPATH'], 'akunu')\n"
            "package = types.ModuleType('akunu'); package.__path__ = [here]\n"
            "sys.modules['akunu'] = package\n"
            "import akunu._abi as abi\n"
            "abi.FUNCTIONS['akunu_of_tomorrow'] = (None, [])\n"
            "import akunu._library\n"
        )
        code, _, errors = run_python(program)
        self.assertEqual(code, 1)
        self.assertIn("lacks akunu_of_tomorrow", errors)


if __name__ == "__main__":
    unittest.main()
