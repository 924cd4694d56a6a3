"""What a process that test_process.py spawns runs."""

import akunu


def work(path: str) -> str:
    with akunu.Model(path, cache=False, threads=1) as model, model.session(threads=1) as session:
        return session.generate("abc", max_tokens=8, temperature=0.0, ignore_end=True).read()
