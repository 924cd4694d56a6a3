"""Ctrl-C, exceptions in callbacks, fork(), and the end of a process: each in one of its own."""

import os
import re
import sys
import unittest

from support import MODEL, ROOT, run_python

START = f"""if True:
    import os, signal, sys, threading, time
    # Ctrl-C as in a terminal: background jobs of a script ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    import akunu
    model = akunu.Model({str(MODEL)!r}, cache=False, threads=1)
    session = model.session(threads=1)

    def greedy(n, of=None):
        made = (of or session).generate("abc", max_tokens=n, temperature=0, ignore_end=True)
        return made.read()

    def interrupt(seconds):
        def send():
            time.sleep(seconds)
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=send, daemon=True).start()
"""


def run(program: str) -> str:
    """The output of a program that must end well and write no errors."""
    code, out, errors = run_python(START + program)
    if code != 0 or errors:
        raise AssertionError(f"exit code {code}: {out}{errors}")
    return out


class Interrupts(unittest.TestCase):
    def interrupted(self, call: str) -> None:
        out = run(f"""
    expected = greedy(12)
    texts = [list(range(40, 70))] * 2000
    for seconds in (0.02, 0.05, 0.1):
        interrupt(seconds)
        try:
            while True:
                {call}
        except KeyboardInterrupt:
            print("interrupted")
        assert greedy(12) == expected
        assert greedy(12, model.session(threads=1)) == expected
""")
        self.assertEqual(out.split(), ["interrupted"] * 3)

    def test_generating(self) -> None:
        self.interrupted("greedy(200)")

    def test_chatting(self) -> None:
        self.interrupted(
            'session.chat([{"role": "user", "content": "a"}], max_tokens=100).message'
        )

    def test_embedding(self) -> None:
        self.interrupted("session.embed(texts)")

    def test_numpy_is_imported_where_no_interrupt_comes(self) -> None:
        out = run("""
    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name == "numpy":
                print(threading.current_thread() is threading.main_thread())

    sys.meta_path.insert(0, Finder())
    session.embed(["abc"])
""")
        self.assertEqual(out, "False\n")

    def test_loading(self) -> None:
        # During the load itself: between loads Python may be in a finalizer, which ignores it.
        out = run(f"""
    expected = greedy(12)
    def stop(stage, fraction):
        os.kill(os.getpid(), signal.SIGINT)
        return True
    for _ in range(3):
        try:
            akunu.Model({str(MODEL)!r}, cache=False, threads=1, progress=stop).close()
        except KeyboardInterrupt:
            print("interrupted")
        assert greedy(12) == expected
        assert greedy(12, model.session(threads=1)) == expected
""")
        self.assertEqual(out.split(), ["interrupted"] * 3)


class Callbacks(unittest.TestCase):
    def test_an_exception_of_log_is_raised_by_the_call(self) -> None:
        # Quantizing the KV cache of so small a model, or its load, gives the log a line.
        out = run(f"""
    lines = []
    other = akunu.Model({str(MODEL)!r}, cache=False, log=lambda level, line: lines.append(line))
    def fail(level, line):
        raise ZeroDivisionError(line)
    if lines:
        try:
            akunu.Model({str(MODEL)!r}, cache=False, log=fail)
        except ZeroDivisionError as error:
            assert str(error) == lines[0]
            print("raised")
    else:
        print("raised")
""")
        self.assertEqual(out, "raised\n")

    def test_an_exception_of_the_reader_leaves_the_session_usable(self) -> None:
        out = run("""
    try:
        for piece in session.generate("abc"):
            raise ZeroDivisionError
    except ZeroDivisionError:
        print(greedy(12) == greedy(12, model.session(threads=1)))
""")
        self.assertEqual(out, "True\n")

    def test_an_exception_inside_a_callback_is_raised_by_the_call(self) -> None:
        out = run("""
    from akunu import _reply
    def push(self, text):
        raise ZeroDivisionError
    real, _reply.Work.push = _reply.Work.push, push
    try:
        greedy(12)
    except ZeroDivisionError:
        print("raised")
    _reply.Work.push = real
    print(greedy(12) == greedy(12, model.session(threads=1)))
""")
        self.assertEqual(out, "raised\nTrue\n")


@unittest.skipUnless(hasattr(os, "fork"), "no fork()")
class Processes(unittest.TestCase):
    def test_a_child_is_told_to_load_its_own(self) -> None:
        out = run(f"""
    import warnings
    warnings.simplefilter("ignore")  # that threads run
    expected = greedy(12)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            try:
                session.generate([7]).read()
            except akunu.AkunuError as error:
                os.write(writer, str(error).encode() + b"\\n")
            try:
                model.session()
            except akunu.AkunuError as error:
                os.write(writer, str(error).encode() + b"\\n")
            del session
            with akunu.Model({str(MODEL)!r}, cache=False, threads=1) as own:
                os.write(writer, str(greedy(12, own.session(threads=1)) == expected).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    print(os.read(reader, 9999).decode())
    print(greedy(12) == expected)
""")
        session, model, child, parent = out.splitlines()
        self.assertRegex(session, r"session was made before fork\(\).*child process")
        self.assertRegex(model, r"model was made before fork\(\)")
        self.assertEqual((child, parent), ("True", "True"))

    def test_a_process_ends_during_a_generation(self) -> None:
        out = run("""
    made = session.generate("abc", temperature=0, ignore_end=True)
    next(made)
    threading.Thread(target=lambda: other.generate("abc").read(), daemon=True)
    print("end")
""")
        self.assertEqual(out, "end\n")

    def test_multiprocessing_with_spawn(self) -> None:
        code, out, errors = run_python(f"""if True:
    import multiprocessing, sys
    sys.path.insert(0, {str(ROOT / "python" / "tests")!r})
    import spawned
    if __name__ == "__main__":
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            texts = pool.map(spawned.work, [{str(MODEL)!r}] * 2)
        print(texts[0] == texts[1] != "")
""")
        self.assertEqual((code, out), (0, "True\n"), errors)


class Readme(unittest.TestCase):
    def test_the_example_of_the_readme_runs(self) -> None:
        text = (ROOT / "python" / "README.md").read_text(encoding="utf-8")
        (program,) = re.findall(r"^```python\n(.*?)^```$", text, flags=re.M | re.S)
        code, out, errors = run_python(program, str(MODEL))
        self.assertEqual((code, errors), (0, ""))
        self.assertRegex(out, r'\{"age": ?[0-9]+\}')


if __name__ == "__main__":
    sys.exit(unittest.main())
