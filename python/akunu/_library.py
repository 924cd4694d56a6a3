"""Finds and loads the C library, checks its version, and calls it.

The library is looked for in this order: the file that AKUNU_LIBRARY names; the one in this package
(wheels bundle it); where the system's loader looks; where pkg-config knows akunu.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator, List, Optional, Tuple, Type, TypeVar

from . import _abi
from ._errors import AkunuError, Status, make_error

FILE_NAME = "libakunu.0.dylib" if sys.platform == "darwin" else "libakunu.so.0"
EXPECTED = (_abi.AKUNU_VERSION_MAJOR, _abi.AKUNU_VERSION_MINOR)

_INSTALL = (
    "Install akunu (./configure && make && make install in its sources, then ldconfig), or set "
    f"AKUNU_LIBRARY to the path of {FILE_NAME}."
)
_T = TypeVar("_T", bound=ctypes.Structure)


# ---- Loading -----------------------------------------------------------------------------------
def _find_pkg_config() -> Optional[str]:
    """The library where pkg-config knows akunu; None: pkg-config does not."""
    try:
        libdir = subprocess.run(
            ["pkg-config", "--variable=libdir", "akunu"], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
    return os.path.join(libdir, FILE_NAME) if libdir else None


def _candidates() -> Iterator[Tuple[str, str]]:
    """Paths to try in their order, each with the words for it in a message."""
    given = os.environ.get("AKUNU_LIBRARY")
    if given:
        yield given, "AKUNU_LIBRARY"
        return
    bundled = Path(__file__).parent / "lib" / FILE_NAME
    if bundled.exists():
        yield str(bundled), "in the package"
    yield FILE_NAME, "the system's loader"
    known = _find_pkg_config()
    if known:
        yield known, "pkg-config"


def _check_version(found: str, path: str) -> None:
    numbers = found.split(".")
    if tuple(numbers[:2]) != tuple(str(n) for n in EXPECTED):
        raise ImportError(
            f"the library {path} is akunu {found}, and this Python package needs "
            f"{EXPECTED[0]}.{EXPECTED[1]}. Install the package of the same version, or set "
            "AKUNU_LIBRARY to another library."
        )


def _declare(library: Any, path: str) -> None:
    """Gives each function its types, so that a wrong call is an exception and no crash."""
    missing: List[str] = []
    for name, (result, parameters) in _abi.FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            missing.append(name)
            continue
        function.restype = result
        function.argtypes = parameters
    if missing:
        raise ImportError(
            f"the library {path} lacks {', '.join(missing[:3])}"
            f"{' and others' if len(missing) > 3 else ''}, which this Python package needs: it is "
            "older than the package. Install both from the same sources."
        )


def _open() -> Any:
    tried: List[str] = []
    for path, source in _candidates():
        try:
            library = ctypes.CDLL(path)
            version = library.akunu_version
        except (OSError, AttributeError) as error:
            tried.append(f"{source}: {error}")
            continue
        version.restype = ctypes.c_char_p
        _check_version(version().decode(), path)
        _declare(library, path)
        return library
    raise ImportError(
        f"the C library of akunu ({FILE_NAME}) cannot be loaded ({'; '.join(tried)}). {_INSTALL}"
    )


# No type checker knows the functions of a library: calls of it are not checked before they run.
lib: Any = _open()


def version() -> str:
    """The version of the C library: "0.1.0"."""
    return str(lib.akunu_version().decode())


def build_info() -> str:
    """One line about the build of the C library: compiler, instruction sets, libraries."""
    return str(lib.akunu_build_info().decode())


# ---- Calling -----------------------------------------------------------------------------------
def last_error() -> AkunuError:
    """The calling thread's last failure."""
    message = lib.akunu_last_error().decode("utf-8", "replace")
    return make_error(int(lib.akunu_last_status()), message)


def check(status: int) -> None:
    """Raises what a call that returns a status failed with."""
    if status != Status.OK:
        raise last_error()


def check_pointer(pointer: Optional[int]) -> int:
    """The same for a call that returns a handle."""
    if not pointer:
        raise last_error()
    return pointer


def check_count(n: int) -> int:
    """The same for a call that returns a number, -1 on failure."""
    if n < 0:
        raise last_error()
    return n


# ---- Structs -----------------------------------------------------------------------------------
def c_string(text: object, what: str) -> bytes:
    """UTF-8 for a NUL-terminated parameter. A path is encoded as the file system's names are."""
    if isinstance(text, os.PathLike):
        data = os.fsencode(text)
    elif isinstance(text, bytes):
        data = text
    elif isinstance(text, str):
        data = text.encode("utf-8", "surrogateescape")
    else:
        raise TypeError(f"{what} is {type(text).__name__}; a str is expected")
    if b"\0" in data:
        raise ValueError(f"{what} holds a NUL character")
    return data


def default(kind: Type[_T], **members: object) -> _T:
    """A struct of the API with the library's defaults, then the members given that are not None."""
    struct = kind()
    getattr(lib, f"{kind.__name__}_default")(ctypes.byref(struct), ctypes.sizeof(struct))
    for name, value in members.items():
        if value is not None:
            set_member(struct, name, value)
    return struct


def set_member(struct: ctypes.Structure, name: str, value: object) -> None:
    """Sets a member. ctypes cuts integers that are too large, which is an error here."""
    if isinstance(value, (str, os.PathLike)):
        value = c_string(value, name)
    elif isinstance(value, bool):
        value = int(value)
    try:
        setattr(struct, name, value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}, of type {type(value).__name__}") from None
    kept = getattr(struct, name)
    if isinstance(value, int) and isinstance(kept, int) and kept != value:
        raise ValueError(f"{name} is {value}, which is out of range")


def fetch(kind: Type[_T], function: Any, *arguments: object) -> _T:
    """A struct that the library fills."""
    struct = kind()
    check(function(*arguments, ctypes.byref(struct), ctypes.sizeof(struct)))
    return struct


def choose(names: Tuple[str, ...], value: str, what: str) -> int:
    """The number of an enum value from its name."""
    try:
        return names.index(value)
    except ValueError:
        raise ValueError(
            f"{what} is {value!r}; one of {', '.join(repr(n) for n in names if n)} is expected"
        ) from None
