"""What the tests share: the tree, its tiny models, a program run by another Python."""

import os
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any, Dict, Tuple

ROOT = Path(__file__).resolve().parent.parent.parent
DATA = Path(os.environ.get("AK_TEST_DATA", ROOT / "tests" / "data"))
MODEL = DATA / "model.gguf"
ENCODER = DATA / "encoders" / "bert"

numpy: Any
try:
    import numpy
except ImportError:
    numpy = None

needs_numpy = unittest.skipUnless(numpy, "no NumPy")


def run_python(
    program: str, *arguments: str, environment: Any = None, timeout: float = 120
) -> Tuple[int, str, str]:
    """Exit code, output and errors of a program; environment: variables to set, None: to unset."""
    variables: Dict[str, str] = dict(os.environ)
    variables["PYTHONPATH"] = str(ROOT / "python")
    for name, value in (environment or {}).items():
        variables.pop(name, None)
        if value is not None:
            variables[name] = value
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        env=variables,
        timeout=timeout,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr
