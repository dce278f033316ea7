"""Read types, constants and parameters; errors show the place."""

from __future__ import annotations

import ast
import base64
import functools
import re
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np

from corejax.extend import Array, ClosedJaxpr, Jaxpr, ShapedArray, dtypes
from corejax.extend.messages import JaxprSyntaxError
from corejax.extend.printing import param_types, plugin_access
from corejax.extend.types import Refinement, from_numbers, physical_aval, refinement_reader
from corejax_explain.program_text.scalars import INT, UNSIGNED, Scalar, scalar_from_text

NAME = re.compile(r"([A-Za-z_]\w*)")
SCALAR = re.compile(rf"(?:True|False|\([+-]?{UNSIGNED}[+-]{UNSIGNED}j\)|[+-]?{UNSIGNED})(?![\w.])")
STRING = re.compile(r"""b?(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")""")
_SPACE = re.compile(r"(?:\s+|#[^\n]*)*")
_WORD = re.compile(r"\w")
# A refinement adds to sizes, `8@x` or `8@(x,y)`, and behind the shape, `{V:i}` or `{V:(i, j)}`.
_TYPE = re.compile(r"(~?)([A-Za-z]\w*(?:<\w+>)?)\[([\w@(),\s]*)\](\{\w+:(?:\w+|\(\w+(?:,\s*\w+)*\))\})?")
_MARK = re.compile(r"@(?:\w+|\([\w,\s]+\))")
_KEY = re.compile(r"([A-Za-z_]\w*)\s*=")
_OPAQUE = re.compile(r"<[^\n]*?>(?=[\s,;)\]]|$)")


class TypeText(NamedTuple):
    """A type in a text.

    Attributes:
        aval: the type without its refinement.
        refinement: the shape with what the refinement adds, `[8@x,4]{V:i}`; empty if it adds nothing.
        start: where the type starts.
    """

    aval: ShapedArray
    refinement: str
    start: int

    def prints_as(self, aval: ShapedArray) -> bool:
        """Return whether another type has this text."""
        plain = self.aval.str_short()
        text = plain[: plain.index("[")] + self.refinement if self.refinement else plain
        return aval.refined(None) is self.aval and "".join(text.split()) == "".join(aval.str_short().split())


class Cursor:
    """A position in a text, and errors that show it.

    Attributes:
        refinements: the refinements of types that were read so far.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.pos = 0
        self.refinements: list[Refinement] = []

    def fail(self, message: str, pos: int | None = None) -> NoReturn:
        pos = self.pos if pos is None else pos
        start = self.text.rfind("\n", 0, pos) + 1
        line = self.text[start:].partition("\n")[0]
        pointer = "".join("\t" if c == "\t" else " " for c in line[: pos - start]) + "^"
        raise JaxprSyntaxError(f"{self.place(pos)}: {message}\n  {line}\n  {pointer}")

    def place(self, pos: int) -> str:
        """`line 3, column 5`."""
        start = self.text.rfind("\n", 0, pos) + 1
        return f"line {self.text.count(chr(10), 0, pos) + 1}, column {pos - start + 1}"

    def expected(self, what: str) -> NoReturn:
        found = self.text[self.pos : self.pos + 24].split()
        self.fail(f"expected {what}, got {found[0]!r}" if found else f"expected {what}, got the end of the text")

    def space(self) -> None:
        self.pos = _SPACE.match(self.text, self.pos).end()  # type: ignore[union-attr]

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """What the pattern matches here, and step over it."""
        found = pattern.match(self.text, self.pos)
        if found is not None:
            self.pos = found.end()
        return found

    def take(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        """Step over space and what the pattern matches then, which has to be there."""
        self.space()
        found = self.match(pattern)
        if found is None:
            self.expected(what)
        return found

    def at(self, token: str) -> bool:
        """Step over a token and the space before it, if it is next; a word has to end there."""
        self.space()
        end = self.pos + len(token)
        found = self.text.startswith(token, self.pos) and not (token.isalpha() and _WORD.match(self.text, end))
        if found:
            self.pos = end
        return found

    def need(self, token: str, why: str = "") -> None:
        if not self.at(token):
            self.expected(f"`{token}`{why}")

    def items(self, close: str, item: Callable[[], Any], what: str) -> list[Any]:
        """Items with commas between them, up to and over `close`; after a program no comma is needed."""
        found: list[Any] = []
        while not self.at(close):
            found.append(item())
            if not self.at(","):
                if self.at(close):
                    break
                if not isinstance(found[-1], Jaxpr | ClosedJaxpr):
                    self.expected(f"`,` or `{close}` {what}")
        return found

    def type(self) -> ShapedArray:
        """Read a type."""
        return self.refined(self.type_text())

    def type_text(self) -> TypeText:
        """Read a type, and leave the text of its refinement."""
        found = self.take(_TYPE, "a type such as `f32[3,4]`")
        weak, name, sizes, rest = found.groups()
        aval = _aval(weak, name, _MARK.sub("", sizes))
        if isinstance(aval, str):
            self.fail(aval, found.start())
        return TypeText(aval, f"[{sizes}]{rest or ''}" if rest or "@" in sizes else "", found.start())

    def refined(self, given: TypeText) -> ShapedArray:
        """Read the refinement of a type."""
        if not given.refinement:
            return given.aval
        if refinement_reader.value is None:
            plugin_access.get().load_rules("primitives")
        read = refinement_reader.value
        if read is None:
            self.fail(f"`{given.refinement}` needs a plugin that refines types, such as corejax-parallel", given.start)
        try:
            found = read(given.refinement, self.refinements)
        except ValueError as error:
            self.fail(str(error), given.start)
        self.refinements.append(found)
        return given.aval.refined(found)

    def scalar(self, dtype: np.dtype[Any]) -> Scalar:
        """A scalar of a known dtype."""
        return self.converted(self.take(SCALAR, f"a number of dtype {dtype.name}"), dtype)

    def converted(self, found: re.Match[str], dtype: np.dtype[Any]) -> Scalar:
        try:
            return scalar_from_text(found.group(), dtype)
        except (ValueError, OverflowError) as error:
            self.fail(str(error), found.start())


@functools.lru_cache(maxsize=4096)
def _aval(weak: str, name: str, shape: str) -> ShapedArray | str:
    """The aval, or what is wrong with it."""
    dtype = dtype_of_name(name)
    if dtype is None:
        return f"{name!r} is no dtype; dtypes are written f32, float32, i64, bool, ..."
    try:
        return ShapedArray(tuple(int(d) for d in shape.split(",")) if shape.strip() else (), dtype, weak == "~")
    except (ValueError, OverflowError):
        return f"`[{shape}]` is no shape; shapes are written `[]`, `[3]`, `[3,4]`"


def dtype_of_name(name: str) -> np.dtype[Any] | None:
    """The dtype with this short or long name, or None. Plugins that make dtypes (`key<fry>`) are loaded for it."""
    for _ in range(2 if "<" in name else 1):
        try:
            return dtypes.from_short_name(name)
        except ValueError:
            if "<" in name and not plugin_access.get().load_rules("primitives"):
                break
    return dtypes.LONG_NAMES.get(name)


class ValueReader(Cursor):
    """Constants and parameters."""

    def const(self, aval: ShapedArray) -> Array:
        """A constant's value, of a known type."""
        self.space()
        start = self.pos
        try:
            if aval.dtype.names is not None:
                return Array(from_numbers(self._const(physical_aval(aval)), aval.dtype), aval)
            return Array(self._const(aval), aval)
        except JaxprSyntaxError:
            raise
        except (ValueError, OverflowError, MemoryError) as error:
            self.fail(f"there is no constant of type {aval.str_short()}: {error}", start)

    def _const(self, aval: ShapedArray) -> np.ndarray[Any, Any]:
        if self.at("full("):
            value = np.broadcast_to(self.scalar(aval.dtype), aval.shape)
            self.need(")")
            return value
        if self.at("base64("):
            return self._base64(aval)
        if self.at("<"):
            self.fail("the value of this constant is not in the text: it was traced when the program was printed")
        parts: list[bytes] = []
        self._nested(aval, 0, parts)
        return np.frombuffer(b"".join(parts), aval.dtype).reshape(aval.shape)

    def _nested(self, aval: ShapedArray, axis: int, parts: list[bytes]) -> None:
        if axis == aval.ndim:
            parts.append(self.scalar(aval.dtype).tobytes())
            return
        self.space()
        start = self.pos
        self.need("[", f", a list of {aval.shape[axis]} along axis {axis}")
        found = self.items("]", lambda: self._nested(aval, axis + 1, parts), "in a list of numbers")
        if len(found) != aval.shape[axis]:
            self.fail(f"this list has {len(found)} items, {aval.str_short()} needs {aval.shape[axis]}", start)

    def _base64(self, aval: ShapedArray) -> np.ndarray[Any, Any]:
        self.space()
        start = self.pos
        encoded = self.string()
        self.need(")")
        try:
            return np.frombuffer(base64.b64decode(encoded, validate=True), aval.dtype).reshape(aval.shape)
        except ValueError as error:
            self.fail(f"these are not the bytes of a constant of type {aval.str_short()}: {error}", start)

    def string(self) -> Any:
        found = self.take(STRING, "a string in quotes")
        try:
            return ast.literal_eval(found.group())
        except (SyntaxError, ValueError) as error:
            self.fail(f"malformed string: {error}", found.start())

    def value(self) -> Any:
        """A parameter's value."""
        self.space()
        start, first = self.pos, self.text[self.pos : self.pos + 1]
        if first == "{":
            return self.program()
        if first == "<":
            self._opaque()
        if first == "~" or _TYPE.match(self.text, self.pos):
            return self.type()
        if STRING.match(self.text, self.pos):
            return self.string()
        found = self.match(SCALAR)
        if found is not None:
            return self._typed(found) if self.at(":") else self._untyped(found)
        if first in ("(", "["):
            self.pos += 1
            return tuple(self.items(")" if first == "(" else "]", self.value, "in a tuple"))
        return self._named(self.take(NAME, "a parameter's value").group(), start)

    def program(self) -> Jaxpr | ClosedJaxpr:
        raise NotImplementedError

    def _opaque(self) -> NoReturn:
        found = _OPAQUE.match(self.text, self.pos)
        what = found.group() if found else "this object"
        self.fail(f"{what} has no text of its own, so this parameter cannot be read back")

    def _untyped(self, found: re.Match[str]) -> Any:
        """Return Python's scalar."""
        text = found.group()
        try:
            if text in ("True", "False"):
                return text == "True"
            if INT.fullmatch(text):
                return int(text)
            kind = complex if text.endswith("j)") else float
            return kind(scalar_from_text(text, np.dtype(kind)))
        except (ValueError, OverflowError) as error:
            self.fail(str(error), found.start())

    def _typed(self, found: re.Match[str]) -> Scalar:
        self.space()
        at = self.pos
        aval = self.type()
        if aval.shape or aval.weak_type:
            self.fail("a parameter's scalar has a type such as `i32[]`", at)
        return self.converted(found, aval.dtype)

    def _named(self, name: str, start: int) -> Any:
        if name == "None":
            return None
        cls = param_types.get(name)
        if self.text.startswith("(", self.pos) and cls is not None:
            self.pos += 1
            return self._call(cls, start)
        if self.text.startswith(".", self.pos) and cls is not None:
            self.pos += 1
            member = self.match(NAME)
            members = getattr(cls, "__members__", {})
            if member is None or member.group() not in members:
                self.fail(f"expected a member of {name}: {', '.join(members) or 'it has none'}", start)
            return members[member.group()]
        dtype = dtype_of_name(name)
        if dtype is not None:
            return dtype
        if self.text.startswith(("(", "."), self.pos):
            self.fail(
                f"class {name!r} is unknown here; corejax's `register_param_type({name})` makes it known",
                start,
            )
        self.fail(f"{name!r} is no value: strings have quotes, dtypes are called float32, int8, bool, ...", start)

    def _call(self, cls: type, start: int) -> Any:
        named: dict[str, Any] = {}

        def item() -> Any:
            self.space()
            key = _KEY.match(self.text, self.pos)
            if key is None:
                return self.value()
            self.pos = key.end()
            named[key.group(1)] = self.value()
            return named  # stands for "not positional"

        found = self.items(")", item, f"among the fields of {cls.__name__}")
        try:
            return cls(*(x for x in found if x is not named), **named)
        except RecursionError:
            raise
        except Exception as error:  # of a class that a plugin has
            self.fail(f"{cls.__name__} does not take these fields: {error}", start)
