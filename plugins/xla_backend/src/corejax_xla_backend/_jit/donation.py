"""Donated arguments: a program takes their memory for its results, and the arrays are gone after the call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import Array, donating, frames_left_out, tree
from corejax_xla_backend._jit.callables import PythonCallable
from corejax_xla_backend._jit.named_arguments import NamedArguments


def donated_leaves(donated: NamedArguments, static_numbers: tuple[int, ...], in_tree: Any) -> tuple[bool, ...]:
    """Whether each traced leaf of a call is donated; empty where none can be.

    Args:
        donated: which arguments are.
        static_numbers: positions of those that are not among the traced ones.
        in_tree: structure of the traced arguments, `(args, kwargs)`.
    """
    if not donated:
        return ()
    args, kwargs = tree.tree_unflatten(in_tree, range(in_tree.num_leaves))
    numbers = [i for i in range(len(args) + len(static_numbers)) if i not in static_numbers]
    given = [arg for i, arg in zip(numbers, args, strict=False) if i in donated.numbers]
    given += [kwargs[name] for name in donated.names if name in kwargs]
    leaves = set(tree.tree_leaves(given))
    return tuple(i in leaves for i in range(in_tree.num_leaves))


class DonatingCall(PythonCallable):
    """A jitted function with donated arguments: deletes the arrays whose memory the program took.

    Args:
        call: the function without that.
        name: its name.
        donated: which arguments are.
    """

    __slots__ = ("_call", "_donated", "_name")

    def __init__(self, call: Callable[..., Any], name: str, donated: NamedArguments) -> None:
        self._call = call
        self._name = name
        self._donated = donated

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        donated = [args[i] for i in self._donated.numbers if i < len(args)]
        donated += [kwargs[name] for name in self._donated.names if name in kwargs]
        try:
            return run_donating(self._call, args, kwargs, donated, self._name)
        except frames_left_out():  # as `api_boundary`, without its call
            raise

    def __repr__(self) -> str:
        return repr(self._call)


def run_donating(
    call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], donated: list[Any], name: str
) -> Any:
    """`call(*args, **kwargs)`; of the arrays in `donated` of its arguments those that it took are deleted afterwards.

    Should an interrupt keep them from being marked, their buffers still say that they are deleted, if not by whom.

    Raises:
        ValueError: an array is donated, and an argument a second time.
    """
    donation = donating(_arrays(donated), name)
    try:
        try:
            donation.__enter__()
            return call(*args, **kwargs)
        finally:
            donation.restore()
    except Exception as error:
        if "donate(a)" not in str(error):  # the toy example of XLA's message
            raise
    raise ValueError(
        f"jit of {name}: an array that is donated is an argument of the same call a second time; pass a copy "
        "(x.copy()) as one of them"
    )


_KINDS: dict[type, Callable[[Any], Any]] = {Array: lambda x: (x,), list: list, tuple: tuple, dict: dict.values}


def _arrays(donated: list[Any]) -> list[Array]:
    """The arrays in arguments, in any order; where all of an argument's leaves are in one container without `tree`."""
    found: list[Array] = []
    for argument in donated:
        kind = _KINDS.get(type(argument))
        items = () if kind is None else kind(argument)
        if kind is None or set(map(type, items)) != {Array}:
            items = [x for x in tree.tree_leaves(argument) if type(x) is Array]
        found += items
    return found
