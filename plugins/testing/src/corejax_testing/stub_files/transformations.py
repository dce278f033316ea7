"""Overloads of the kernel's transformations whose result depends on a flag, with the docstrings of the functions.

They stand here and not at the functions, because the kernel is kept small.
"""

from __future__ import annotations

import re
import textwrap

import corejax
from corejax_testing.stub_files.rendering import docstring

_SIGNATURES = """\
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, overload

from corejax.ir import ClosedJaxpr

_Argnums = int | Sequence[int]
_P = ParamSpec("_P")
_R = TypeVar("_R")
_Aux = TypeVar("_Aux")
_Pullback = Callable[..., tuple[Any, ...]]

@overload
def jvp(
    fun: Callable[..., _R], primals: Sequence[Any], tangents: Sequence[Any], has_aux: Literal[False] = False
) -> tuple[_R, _R]: ...
@overload
def jvp(
    fun: Callable[..., tuple[_R, _Aux]], primals: Sequence[Any], tangents: Sequence[Any], has_aux: Literal[True]
) -> tuple[_R, _R, _Aux]: ...
@overload
def jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any: ...
@overload
def linearize(
    fun: Callable[..., _R], *primals: Any, has_aux: Literal[False] = False
) -> tuple[_R, Callable[..., _R]]: ...
@overload
def linearize(
    fun: Callable[..., tuple[_R, _Aux]], *primals: Any, has_aux: Literal[True]
) -> tuple[_R, Callable[..., _R], _Aux]: ...
@overload
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any: ...
@overload
def vjp(fun: Callable[..., _R], *primals: Any, has_aux: Literal[False] = False) -> tuple[_R, _Pullback]: ...
@overload
def vjp(
    fun: Callable[..., tuple[_R, _Aux]], *primals: Any, has_aux: Literal[True]
) -> tuple[_R, _Pullback, _Aux]: ...
@overload
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any: ...
@overload
def grad(
    fun: Callable[_P, Any],
    argnums: _Argnums = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[_P, Any]: ...
@overload
def grad(
    fun: Callable[_P, tuple[Any, _Aux]],
    argnums: _Argnums = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[_P, tuple[Any, _Aux]]: ...
@overload
def grad(
    fun: Callable[_P, Any],
    argnums: _Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[_P, Any]: ...
def value_and_grad(
    fun: Callable[_P, _R],
    argnums: _Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[_P, tuple[_R, Any]]: ...
@overload
def make_jaxpr(
    fun: Callable[_P, Any],
    static_argnums: int | Iterable[int] = (),
    axis_env: Iterable[tuple[Any, int]] | None = None,
    return_shape: Literal[False] = False,
) -> Callable[_P, ClosedJaxpr]: ...
@overload
def make_jaxpr(
    fun: Callable[_P, Any],
    static_argnums: int | Iterable[int] = (),
    axis_env: Iterable[tuple[Any, int]] | None = None,
    *,
    return_shape: Literal[True],
) -> Callable[_P, tuple[ClosedJaxpr, Any]]: ...
@overload
def make_jaxpr(
    fun: Callable[_P, Any],
    static_argnums: int | Iterable[int] = (),
    axis_env: Iterable[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Callable[_P, Any]: ...
"""


def transformations() -> str:
    """Return the text of the stub, with the docstring of each function at its overloads."""

    def documented(match: re.Match[str]) -> str:
        text = textwrap.indent(docstring(getattr(corejax, match["name"])), "    ")
        return f"{match[0].removesuffix(' ...')}\n{text}\n    ..."

    return re.sub(r"^def (?P<name>\w+)\((?:.|\n)*?: \.\.\.$", documented, _SIGNATURES, flags=re.MULTILINE)
