"""References among the arguments of transformed functions.

A reference is a pytree node without leaves, so that transformations pass it through. `vmap` and `scan` map over it,
`jit` shares a trace between calls with references of the same types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import tree
from corejax.extend.transforms import CellArguments, cell_arguments
from corejax_state.ad import DidntWant, DontWant, GradRef, GradValue
from corejax_state.reference import Ref


class Argument:
    """A reference among the arguments of a jitted function; equal to others of the same type and number.

    The function is traced with a reference of its own in place of the argument, `stand_in`, because it may use the
    argument of its first call from outside as well.
    """

    def __init__(self, ref: Ref, number: int) -> None:
        self.key = (ref.aval, number)
        self.stand_in = Ref.stand_in(ref.aval)

    def __eq__(self, other: object) -> bool:
        return type(other) is Argument and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def _is_ref(x: Any) -> bool:
    return isinstance(x, Ref)


def _returned(ref: Ref) -> Ref:
    """Return a reference in a rebuilt pytree; it must not come from a function that has ended."""
    ref.check_alive()
    return ref


tree.register_pytree_node(Ref, lambda ref: ((), ref), lambda ref, _: _returned(ref), lambda ref: ((), ref))
tree.register_pytree_node(Argument, lambda x: ((), x), lambda x, _: x.stand_in, lambda x: ((), x))


def keyed(args: Any) -> tuple[Any, list[Any], list[Any]]:
    """Return the arguments with an `Argument` in place of each reference, the references, and their stand-ins."""
    leaves, structure = _leaves_and_refs(args)
    refs = [x for x in leaves if type(x) is Ref]
    if not refs:
        return args, [], []
    _check_distinct(refs, args)
    arguments = [Argument(ref, i) for i, ref in enumerate(refs)]
    remaining = iter(arguments)
    args = structure.unflatten([next(remaining) if type(x) is Ref else x for x in leaves])
    return args, refs, [x.stand_in for x in arguments]


def mapped(args: Any, axes: Any) -> list[tuple[Any, Any]]:
    """Return the references among arguments with their axes."""
    leaves, structure = _leaves_and_refs(args)
    refs = [x for x in leaves if type(x) is Ref]
    if not refs:
        return []
    _check_distinct(refs, args)
    pairs = zip(leaves, tree.flatten_axes("vmap in_axes", structure, axes), strict=True)
    return [(x, axis) for x, axis in pairs if type(x) is Ref]


def _leaves_and_refs(args: Any) -> tuple[list[Any], Any]:
    """Flatten arguments; references are leaves."""
    return tree.tree_flatten(args, is_leaf=_is_ref)


def _check_distinct(refs: Sequence[Ref], args: Any) -> None:
    """Raise ValueError if a reference occurs twice in the arguments; the message names both places."""
    if len(refs) == len({id(ref) for ref in refs}):
        return
    places: dict[Ref, Any] = {}
    for path, x in tree.tree_flatten_with_path(args, is_leaf=_is_ref)[0]:
        if x in refs and type(x) is Ref:
            if x in places:
                first, second = (_argument_name(args, p) for p in (places[x], path))
                raise ValueError(
                    f"{x!r} is passed twice, as {first} and as {second}: a function that writes one of them would "
                    "change the other; pass it once"
                )
            places[x] = path


def _argument_name(args: Any, path: Any) -> str:
    """Return the place of a leaf of the arguments, or of `(args, kwargs)`: `argument 0['a']`."""
    is_call = type(args) is tuple and len(args) == 2 and type(args[0]) is tuple and type(args[1]) is dict
    argument, *rest = path[1:] if is_call else path
    return f"argument {str(argument)[1:-1]}{tree.keystr(tuple(rest))}"


def accumulate(cts: Sequence[Any], places: Sequence[Any]) -> tuple[Any, ...]:
    """Add cotangents to the references among places (pytrees like the arguments, or prefixes of them).

    Returns:
        The cotangents, with `GradRef()` for those that were added, and `DidntWant()` for those that are not wanted.

    Raises:
        TypeError: the number of places is not that of the arguments.
    """
    if len(places) != len(cts):
        raise TypeError(f"with_refs takes a place for each of the {len(cts)} arguments, got {len(places)}")
    kinds = (Ref, DontWant, GradValue)
    return tuple(
        tree.tree_map(_accumulated, place, ct, is_leaf=lambda x: x is None or isinstance(x, kinds))
        for place, ct in zip(places, cts, strict=True)
    )


def _accumulated(place: Any, ct: Any) -> Any:
    if isinstance(place, Ref):
        place[...] = place[...] + ct
        return GradRef()
    return DidntWant() if isinstance(place, DontWant) else ct


cell_arguments.provide(CellArguments(mapped, keyed, accumulate))
