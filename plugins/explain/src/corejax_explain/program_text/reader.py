"""Parse types, constants and parameters; errors have the place in the text."""

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
from corejax.extend.types import (
    Packed,
    Refinement,
    ValueType,
    from_numbers,
    refinement_reader,
)
from corejax_explain.program_text.scalars import INT, UNSIGNED, Scalar, scalar_from_text

NAME = re.compile(r"([A-Za-z_]\w*)")
SCALAR = re.compile(rf"(?:True|False|\([+-]?{UNSIGNED}[+-]{UNSIGNED}j\)|[+-]?{UNSIGNED})(?![\w.])")
STRING = re.compile(r"""b?(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")""")
_SPACE = re.compile(r"(?:\s+|#[^\n]*)*")
_WORD = re.compile(r"\w")
# A refinement adds to sizes, `8@x` or `8@(x,y)`, and after the shape, `{V:i}` or `{V:(i, j)}`.
_TYPE = re.compile(r"(~?)([A-Za-z]\w*(?:<\w+>)?)\[([\w@(),\s]*)\](\{\w+:(?:\w+|\(\w+(?:,\s*\w+)*\))\})?")
_VALUE_TYPE = re.compile(r"([A-Za-z_]\w*)\[\s*(?=[A-Za-z~])")  # the name of a value type, before an array's type
_MARK = re.compile(r"@(?:\w+|\([\w,\s]+\))")
_KEY = re.compile(r"([A-Za-z_]\w*)\s*=")
_OPAQUE = re.compile(r"<[^\n]*?>(?=[\s,;)\]]|$)")


class TypeText(NamedTuple):
    """A type in a text.

    Attributes:
        aval: the type without its refinement.
        refinement: text of the shape with its refinement, `[8@x,4]{V:i}`; "" if there is no refinement.
        start: position of the type in the text.
    """

    aval: ShapedArray
    refinement: str
    start: int

    def prints_as(self, aval: ShapedArray) -> bool:
        """Return True if another type has this text."""
        plain = self.aval.str_short()
        text = plain[: plain.index("[")] + self.refinement if self.refinement else plain
        return aval.refined(None) is self.aval and "".join(text.split()) == "".join(aval.str_short().split())


class Cursor:
    """A position in a text, with methods that step over tokens and raise errors with the place.

    Attributes:
        refinements: the refinements of the types that were parsed so far.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.pos = 0
        self.refinements: list[Refinement] = []

    def fail(self, message: str, pos: int | None = None) -> NoReturn:
        """Raise JaxprSyntaxError with a message, the place and the line."""
        pos = self.pos if pos is None else pos
        start = self.text.rfind("\n", 0, pos) + 1
        line = self.text[start:].partition("\n")[0]
        pointer = "".join("\t" if c == "\t" else " " for c in line[: pos - start]) + "^"
        raise JaxprSyntaxError(f"{self.place(pos)}: {message}\n  {line}\n  {pointer}")

    def place(self, pos: int) -> str:
        """Format a position: `line 3, column 5`."""
        start = self.text.rfind("\n", 0, pos) + 1
        return f"line {self.text.count(chr(10), 0, pos) + 1}, column {pos - start + 1}"

    def expected(self, what: str) -> NoReturn:
        """Raise JaxprSyntaxError: `what` was expected in place of the next word."""
        words = self.text[self.pos : self.pos + 24].split()
        self.fail(f"expected {what}, got {words[0]!r}" if words else f"expected {what}, got the end of the text")

    def space(self) -> None:
        """Step over white space and comments."""
        self.pos = _SPACE.match(self.text, self.pos).end()  # type: ignore[union-attr]  # it also matches no space

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Match a pattern at this position and step over the match; return None if it does not match."""
        match = pattern.match(self.text, self.pos)
        if match is not None:
            self.pos = match.end()
        return match

    def take(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        """Step over space and a match of the pattern; fail if the pattern does not match."""
        self.space()
        match = self.match(pattern)
        if match is None:
            self.expected(what)
        return match

    def at(self, token: str) -> bool:
        """Step over a token and the space before it, and return True, if it is next as a whole word."""
        self.space()
        end = self.pos + len(token)
        is_next = self.text.startswith(token, self.pos) and not (token.isalpha() and _WORD.match(self.text, end))
        if is_next:
            self.pos = end
        return is_next

    def need(self, token: str, why: str = "") -> None:
        """Step over a token; fail if it is not next."""
        if not self.at(token):
            self.expected(f"`{token}`{why}")

    def items(self, close: str, item: Callable[[], Any], what: str) -> list[Any]:
        """Parse items with commas between them up to `close`, and step over it; programs need no comma."""
        parsed: list[Any] = []
        while not self.at(close):
            parsed.append(item())
            if not self.at(","):
                if self.at(close):
                    break
                if not isinstance(parsed[-1], Jaxpr | ClosedJaxpr):
                    self.expected(f"`,` or `{close}` {what}")
        return parsed

    def type(self) -> ShapedArray:
        """Parse a type."""
        return self.refined(self.type_text())

    def type_text(self) -> TypeText:
        """Parse a type without its refinement, of which only the text is kept."""
        match = self.take(_TYPE, "a type such as `f32[3,4]`")
        weak, name, sizes, rest = match.groups()
        aval = _aval(weak, name, _MARK.sub("", sizes))
        if isinstance(aval, str):
            self.fail(aval, match.start())
        return TypeText(aval, f"[{sizes}]{rest or ''}" if rest or "@" in sizes else "", match.start())

    def refined(self, unrefined: TypeText) -> ShapedArray:
        """Parse the refinement of a type."""
        if not unrefined.refinement:
            return unrefined.aval
        if refinement_reader.value is None:
            plugin_access().load_primitives()
        read = refinement_reader.value
        if read is None:
            message = f"`{unrefined.refinement}` needs a plugin that refines types, such as corejax-parallel"
            self.fail(message, unrefined.start)
        try:
            refinement = read(unrefined.refinement, self.refinements)
        except ValueError as error:
            self.fail(str(error), unrefined.start)
        self.refinements.append(refinement)
        return unrefined.aval.refined(refinement)

    def scalar(self, dtype: np.dtype[Any]) -> Scalar:
        """Parse a scalar of a known dtype."""
        return self.converted(self.take(SCALAR, f"a number of dtype {dtype.name}"), dtype)

    def converted(self, match: re.Match[str], dtype: np.dtype[Any]) -> Scalar:
        """Convert the text of a scalar; fail at its place if it does not fit the dtype."""
        try:
            return scalar_from_text(match.group(), dtype)
        except (ValueError, OverflowError) as error:
            self.fail(str(error), match.start())


@functools.lru_cache(maxsize=4096)
def _aval(weak: str, name: str, shape: str) -> ShapedArray | str:
    """Return the aval, or a message if the type is malformed."""
    dtype = dtype_of_name(name)
    if dtype is None:
        return f"{name!r} is not a dtype; dtypes are written f32, float32, i64, bool, ..."
    try:
        return ShapedArray(tuple(int(d) for d in shape.split(",")) if shape.strip() else (), dtype, weak == "~")
    except (ValueError, OverflowError):
        return f"`[{shape}]` is not a shape; shapes are written `[]`, `[3]`, `[3,4]`"


def dtype_of_name(name: str) -> np.dtype[Any] | None:
    """Return the dtype with this short or long name, or None. For an extended dtype (`key<fry>`) plugins are loaded."""
    for _ in range(2 if "<" in name else 1):
        try:
            return dtypes.from_short_name(name)
        except ValueError:
            if "<" in name and not plugin_access().load_primitives():
                break
    return dtypes.LONG_NAMES.get(name)


def value_type(name: str) -> type[ValueType] | None:
    """Return the value type with this name, the latest one that was defined, or None; plugins are loaded if need be."""
    found = ValueType.named(name)
    return ValueType.named(name) if found is None and plugin_access().load_primitives() else found


class ValueReader(Cursor):
    """The parser of constants and parameters."""

    def type_text(self) -> TypeText:
        """Parse a type; only the text of its refinement is kept."""
        self.space()
        start = self.pos
        cls = self._value_type()
        if cls is None:
            return super().type_text()
        array, fields = self.type(), {}
        while self.at(","):
            key = self.take(_KEY, "a field, its name and `=`").group(1)
            fields[key] = self.value()
        self.need("]")
        return TypeText(cls(array.shape, array.dtype, **fields), "", start)

    def _value_type(self) -> type[ValueType] | None:
        """Step over the name of a value type and its bracket, and return the class, or None for other types."""
        match = _VALUE_TYPE.match(self.text, self.pos)
        if match is None:
            return None
        cls = value_type(match.group(1))
        if cls is not None:
            self.pos = match.end()
        return cls

    def const(self, aval: ShapedArray) -> Array | Packed:
        """Parse a constant of a known type."""
        self.space()
        start = self.pos
        if isinstance(aval, ValueType):
            self.need("(")
            parts = []
            for part in aval.parts():
                parts.append(self.const(part))
                self.at(",")
            self.need(")")
            return Packed(aval, tuple(parts))
        try:
            if aval.dtype.names is not None:
                return Array(from_numbers(self._const(*aval.parts()), aval.dtype), aval)
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
        items = self.items("]", lambda: self._nested(aval, axis + 1, parts), "in a list of numbers")
        if len(items) != aval.shape[axis]:
            self.fail(f"this list has {len(items)} items, {aval.str_short()} needs {aval.shape[axis]}", start)

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
        """Parse a string or bytes in quotes."""
        match = self.take(STRING, "a string in quotes")
        try:
            return ast.literal_eval(match.group())
        except (SyntaxError, ValueError) as error:
            self.fail(f"malformed string: {error}", match.start())

    def value(self) -> Any:
        """Parse the value of a parameter."""
        self.space()
        start, first = self.pos, self.text[self.pos : self.pos + 1]
        if first == "{":
            return self.program()
        if first == "<":
            self._opaque()
        if first == "~" or _TYPE.match(self.text, self.pos) or _VALUE_TYPE.match(self.text, self.pos):
            return self.type()
        if STRING.match(self.text, self.pos):
            return self.string()
        scalar = self.match(SCALAR)
        if scalar is not None:
            return self._typed(scalar) if self.at(":") else self._untyped(scalar)
        if first in ("(", "["):
            self.pos += 1
            return tuple(self.items(")" if first == "(" else "]", self.value, "in a tuple"))
        return self._named(self.take(NAME, "a parameter's value").group(), start)

    def program(self) -> Jaxpr | ClosedJaxpr:
        """Parse a program; subclasses that accept programs override this."""
        raise NotImplementedError

    def _opaque(self) -> NoReturn:
        match = _OPAQUE.match(self.text, self.pos)
        what = match.group() if match else "this object"
        self.fail(f"{what} has no text of its own, so this parameter cannot be read back")

    def _untyped(self, match: re.Match[str]) -> Any:
        """Convert a scalar without a type to a Python scalar."""
        text = match.group()
        try:
            if text in ("True", "False"):
                return text == "True"
            if INT.fullmatch(text):
                return int(text)
            kind = complex if text.endswith("j)") else float
            return kind(scalar_from_text(text, np.dtype(kind)))
        except (ValueError, OverflowError) as error:
            self.fail(str(error), match.start())

    def _typed(self, match: re.Match[str]) -> Scalar:
        self.space()
        at = self.pos
        aval = self.type()
        if aval.shape or aval.weak_type:
            self.fail("a parameter's scalar has a type such as `i32[]`", at)
        return self.converted(match, aval.dtype)

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
        self.fail(f"{name!r} is not a value: strings have quotes, dtypes are called float32, int8, bool, ...", start)

    def _call(self, cls: Callable[..., Any], start: int) -> Any:
        named: dict[str, Any] = {}

        def item() -> Any:
            self.space()
            key = _KEY.match(self.text, self.pos)
            if key is None:
                return self.value()
            self.pos = key.end()
            named[key.group(1)] = self.value()
            return named  # a sentinel: this field is not positional

        name = getattr(cls, "__name__", repr(cls))
        fields = self.items(")", item, f"among the fields of {name}")
        try:
            return cls(*(x for x in fields if x is not named), **named)
        except RecursionError:
            raise
        except Exception as error:  # raised by the constructor of a plugin's class
            self.fail(f"{name} does not take these fields: {error}", start)
