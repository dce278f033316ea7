"""Arguments of a function as types on a command line: `f32[3,4], {"w": f32[3,3]}, n=5`.

arguments = [[name "="] value, ...]
value     = type | number | string | None | "(" values ")" | "[" values "]" | "{" key ":" value, ... "}"
type      = as in jaxprs: f32[3,4], float32[3,4], ~f32[] (weak)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from corejax.extend.types import ShapeDtypeStruct
from corejax_explain.program_text import reader

_KEYWORD = re.compile(r"([A-Za-z_]\w*)\s*=(?!=)")
_TYPE_BEGINS = re.compile(r"[A-Za-z_]\w*(?:<\w+>)?\[")
_CLOSING = {"(": ")", "[": "]"}


def read_arguments(texts: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
    """Parse positional and keyword arguments; types become `ShapeDtypeStruct`s.

    Args:
        texts: texts with one argument each, or several with commas between.

    Raises:
        JaxprSyntaxError: a text is malformed; the message shows the place.
    """
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for text in texts:
        _Arguments(text).read(args, kwargs)
    return args, kwargs


class _Arguments(reader.ValueReader):
    """The parser of one text."""

    def read(self, args: list[Any], kwargs: dict[str, Any]) -> None:
        """Parse the text and add its arguments to `args` and `kwargs`."""
        self.space()
        while self.pos < len(self.text):
            start = self.pos
            keyword = self.match(_KEYWORD)
            if keyword is None:
                if kwargs:
                    self.fail(f"a positional argument after {next(reversed(kwargs))}=", start)
                args.append(self.value())
            elif keyword.group(1) in kwargs:
                self.fail(f"argument {keyword.group(1)!r} is given twice", start)
            else:
                kwargs[keyword.group(1)] = self.value()
            self.space()
            if not self.at(",") and self.pos < len(self.text):
                self.expected("`,` or the end of the arguments")
            self.space()

    def value(self) -> Any:
        """Parse an argument, or a part of one."""
        self.space()
        first = self.text[self.pos : self.pos + 1]
        if first == "{":
            return self.mapping()
        if first in _CLOSING and not self.text[self.pos :].partition(")")[0].endswith("j"):
            return self.sequence(first)
        if self.pos == len(self.text) or first == "<":
            self.expected("a type such as `f32[3,4]`, or a value")
        start = self.pos
        name = reader.NAME.match(self.text, self.pos)
        if first == "~" or _TYPE_BEGINS.match(self.text, self.pos):
            aval = self.type()
            return ShapeDtypeStruct(aval.shape, aval.dtype, aval.weak_type)
        if name and reader.dtype_of_name(name.group()) is not None:
            self.fail(
                f"the type of a scalar is written `{name.group()}[]`; a dtype is a string, {name.group()!r}", start
            )
        return super().value()

    def sequence(self, opening: str) -> Any:
        """Parse a tuple or a list; parentheses around one value without a comma only group."""
        self.need(opening)
        closing, items, comma = _CLOSING[opening], [], False
        while not self.at(closing):
            items.append(self.value())
            comma = self.at(",")
            if not comma:
                self.need(closing, " or `,`")
                break
        if opening == "[":
            return items
        return items[0] if len(items) == 1 and not comma else tuple(items)

    def mapping(self) -> dict[Any, Any]:
        """Parse a dict."""
        self.need("{")
        items: dict[Any, Any] = {}
        while not self.at("}"):
            key = self.key()
            self.need(":", f" after the key {key!r}")
            items[key] = self.value()
            if not self.at(","):
                self.need("}", " or `,`")
                break
        return items

    def key(self) -> Any:
        """Parse the key of a dict: a string or a number."""
        self.space()
        if reader.STRING.match(self.text, self.pos):
            return self.string()
        number = self.match(reader.SCALAR)
        if number is None:
            self.fail("a key is a string in quotes or a number")
        return self._untyped(number)
