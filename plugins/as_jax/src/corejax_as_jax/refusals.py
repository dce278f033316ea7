"""What errors say: a name that is missing, and a process in which corejax cannot be jax."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from corejax_as_jax.version import JAX_VERSION, PATH

NAMES = Path(__file__).parent / "names"
_REQUIREMENT = re.compile(r"jax\s*(?:\[[^]]*\])?\s*\(?\s*([<>=!~][^;)]*)")
_LEAST = re.compile(r"(?:>=?|~=|===?)\s*([0-9][0-9.]*)")


_Error = TypeVar("_Error", bound="_Late")


class _Late:
    """The part of an exception that makes its text when it is read: libraries ask for names and catch the error."""

    make: Callable[[], str]

    def __str__(self) -> str:
        return self.make()

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self).__bases__[1], (str(self),))


class MissingAttribute(_Late, AttributeError):
    """An AttributeError with a text that is made when it is read."""


class MissingName(_Late, ImportError):
    """An ImportError with a text that is made when it is read."""


class MissingModule(_Late, ModuleNotFoundError):
    """A ModuleNotFoundError with a text that is made when it is read."""


for _kind in (MissingAttribute, MissingName, MissingModule):  # in tracebacks, under the names that everyone knows
    _kind.__name__ = _kind.__qualname__ = _kind.__bases__[1].__name__
    _kind.__module__ = "builtins"


def late(error: _Error, make: Callable[[], str]) -> _Error:
    """Give an exception of these classes its text; return it."""
    error.make = make
    return error


def missing_text(text: str, library: str, suggestion: str = "") -> str:
    """Return the message for a missing name: which library asks for it, and what to do.

    Args:
        text: what is missing.
        library: the package that asks for it; "" or `__main__` for the user's program.
        suggestion: ", did you mean ...", or "".
    """
    if not library or library == "__main__":
        return (
            f"{text}: jax is corejax here (corejax-as-jax), which provides the names of JAX {JAX_VERSION}{suggestion}"
        )
    newer = unmet_requirement(library)
    if newer:
        return (
            f"{text}, which {library} asks for: jax is corejax here (corejax-as-jax), which provides the names of JAX "
            f"{JAX_VERSION}, and {newer}{suggestion}. Install a release of {library} for JAX {JAX_VERSION}"
        )
    return (
        f"{text}, which {library} asks for: jax is corejax here (corejax-as-jax), which provides the public names of "
        f"JAX {JAX_VERSION} and the private ones that known libraries use{suggestion}. `corejax as-jax --scan "
        f"{library}` lists all such names of {library}; please report them"
    )


def unmet_requirement(library: str) -> str:
    """Return how an installed library asks for a newer JAX, "chex 0.3 requires jax>=0.12"; "" if it does not."""
    from importlib import metadata  # takes 10 ms to import, and only errors need it

    for distribution in metadata.packages_distributions().get(library, ()):
        for line in metadata.requires(distribution) or ():
            wanted = _REQUIREMENT.match(line)
            if wanted and any(_numbers(least) > _numbers(JAX_VERSION) for least in _LEAST.findall(wanted[1])):
                return f"{distribution} {metadata.version(distribution)} requires jax{wanted[1].strip()}"
    return ""


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(".") if number)


def check_process(loaded: ModuleType | None) -> None:
    """Check that `import jax` can give corejax in this process.

    Args:
        loaded: the module `jax` that is imported already, or None.

    Raises:
        ImportError: another jax is imported, or the files of this package are not there.
    """
    file = getattr(loaded, "__file__", None)
    if loaded is not None and file != str(PATH / "jax" / "__init__.py"):
        raise ImportError(_other_jax(loaded, file), name="jax")
    if not NAMES.is_dir():
        frozen = "this program is frozen, and " if getattr(sys, "frozen", False) else ""
        raise ImportError(
            f"{frozen}the modules of jax are files in {NAMES}, which is not there: corejax-as-jax has to be installed "
            "as files, with the folders `names` and `path` of the package corejax_as_jax as its data",
            name="jax",
        )


def _other_jax(loaded: ModuleType, file: str | None) -> str:
    from importlib import metadata

    if "corejax_as_jax" in str(file):
        return (
            f"two copies of corejax-as-jax: the path of one, {file}, is on PYTHONPATH, and the program imports "
            f"another, {Path(__file__).parent}. Set PYTHONPATH to what `corejax as-jax --path` prints here"
        )
    try:
        found = f", and the installed distribution is jax {metadata.version('jax')}"
    except metadata.PackageNotFoundError:
        found = ""
    release = getattr(loaded, "__version__", "")
    return (
        f"jax {release} is imported already, from {file or '?'}{found if release and release not in found else ''}: a "
        "process has one jax. Call corejax_as_jax.install() before the first import of jax or of a library that "
        "imports jax, or run the program by `python -m corejax_as_jax prog.py`"
    )
