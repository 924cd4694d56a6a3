"""Bundles the installed C library with a wheel, which is then for this platform alone.

The library is the file that AKUNU_LIBRARY names, or the one that pkg-config knows. Without one, or
with AKUNU_LIBRARY=none, the wheel holds Python alone and finds the library when it is imported.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Optional, Tuple

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

FILE_NAME = "libakunu.0.dylib" if sys.platform == "darwin" else "libakunu.so.0"


def find_library() -> Optional[Path]:
    given = os.environ.get("AKUNU_LIBRARY")
    if given == "none":
        return None
    if given:
        return Path(given).resolve(strict=True)
    try:
        libdir = subprocess.run(
            ["pkg-config", "--variable=libdir", "akunu"], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
    path = Path(libdir) / FILE_NAME
    return path.resolve() if path.exists() else None


def read_version() -> str:
    """The version of the header that the declarations were made from."""
    text = Path(__file__).with_name("akunu").joinpath("_abi.py").read_text(encoding="utf-8")
    numbers: Dict[str, str] = dict(re.findall(r"^AKUNU_VERSION_(\w+) = (\d+)$", text, re.M))
    return ".".join(numbers[name] for name in ("MAJOR", "MINOR", "PATCH"))


LIBRARY = find_library()


class BuildPackage(build_py):
    """Copies the library into the package."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        folder = Path(self.build_lib) / "akunu" / "lib"
        shutil.rmtree(folder, ignore_errors=True)  # of an earlier build
        if LIBRARY:
            folder.mkdir(parents=True)
            shutil.copyfile(LIBRARY, folder / FILE_NAME)
            print(f"akunu: {LIBRARY} is bundled")
        else:
            print("akunu: no library is bundled; it is looked for when akunu is imported")


class BuildWheel(bdist_wheel):
    """With a library the wheel is for this platform, and for any Python 3 of it."""

    def finalize_options(self) -> None:
        super().finalize_options()
        if LIBRARY:
            self.root_is_pure = False

    def get_tag(self) -> Tuple[str, str, str]:
        platform = super().get_tag()[2]
        return ("py3", "none", platform if LIBRARY else "any")


COMMANDS: Dict[str, Any] = {"build_py": BuildPackage, "bdist_wheel": BuildWheel}
setup(version=read_version(), cmdclass=COMMANDS)
