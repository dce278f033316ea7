"""Arguments of functions with custom rules: resolved to positions, flattened to leaves, and unflattened again."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import Tracer, check_arguments, fun_name, leaf_names, tree


class Parameters:
    """A function's positional parameters, for calls by keyword and for positions given by name."""

    def __init__(
        self, fun: Callable[..., Any], nondiff_argnums: Any, nondiff_argnames: Any = (), defaults: bool = True
    ) -> None:
        self.fun = fun
        self.defaults = defaults
        try:
            self.signature: inspect.Signature | None = inspect.signature(fun)
        except (TypeError, ValueError):  # a builtin
            self.signature = None
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = self.signature.parameters.values() if self.signature else ()
        self.names = [p.name for p in parameters if p.kind in kinds]
        self.plain = self.signature is not None and len(self.names) == len(self.signature.parameters)
        self.nondiff = self._positions(nondiff_argnums, nondiff_argnames)

    def _positions(self, argnums: Any, argnames: Any) -> tuple[int, ...]:
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        names = (argnames,) if isinstance(argnames, str) else tuple(argnames)
        for name in names:
            if name not in self.names:
                raise ValueError(
                    f"nondiff_argnames: {fun_name(self.fun)} has no positional parameter {name!r}; it has {self.names}"
                )
        for i in numbers:
            if not isinstance(i, int):
                raise TypeError(f"nondiff_argnums must be integers, got {argnums!r}")
            if self.plain and not -len(self.names) <= i < len(self.names):
                raise ValueError(
                    f"nondiff_argnums={argnums!r}: {fun_name(self.fun)} takes {len(self.names)} positional arguments"
                )
        wrapped = {i % len(self.names) if i < 0 else i for i in numbers}
        return tuple(sorted(wrapped | {self.names.index(name) for name in names}))

    def positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return all arguments by position.

        Defaults are filled in if `self.defaults` is set or an argument after them was passed.

        Raises:
            TypeError: if the arguments do not fit the signature, or an argument is keyword-only.
        """
        if self.signature is None or (self.plain and not kwargs and len(args) == len(self.names)):
            if kwargs:
                raise TypeError(f"{fun_name(self.fun)} has no signature, so it takes no arguments by keyword")
            return args
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{fun_name(self.fun)}: {error}") from None
        if self.defaults or bound.kwargs:
            bound.apply_defaults()
        # The other keywords are defaults, for example those that a `functools.partial` has bound.
        by_keyword = sorted(bound.kwargs.keys() & kwargs.keys())
        if by_keyword:
            raise TypeError(
                f"{fun_name(self.fun)}: the arguments {by_keyword} are keyword-only; a function "
                "with custom rules takes its arguments by position"
            )
        return bound.args


class Arguments:
    """The structure of one call's arguments, to flatten them to leaves and back.

    A tracer inside an argument that is not differentiated is also a leaf, before all others. So every transformation
    around the call processes it, and only rules for derivatives do not.

    Attributes:
        num_static: number of traced leaves of the static arguments.
        in_tree: structure of the tuple of the arguments that are differentiated.
    """

    __slots__ = ("_holes", "_nondiff", "_static", "in_tree", "num_static")

    def __init__(self, args: tuple[Any, ...], nondiff: tuple[int, ...], leaves: list[Any]) -> None:
        """Append the leaves to `leaves`. An equation holds this object, so the object must not hold the leaves."""
        self._nondiff = tuple(i for i in nondiff if i < len(args))
        self._static: list[Any] = []
        self._holes: list[tuple[int, Any, list[Any]]] = []  # argument, structure, leaves with _HOLE for traced ones
        if self._nondiff:
            for k, i in enumerate(self._nondiff):
                parts, treedef = tree.tree_flatten(args[i])
                traced = [x for x in parts if isinstance(x, Tracer)]
                self._static.append(None if traced else args[i])
                if traced:
                    leaves += traced
                    self._holes.append((k, treedef, [_HOLE if isinstance(x, Tracer) else x for x in parts]))
            args = tuple(x for i, x in enumerate(args) if i not in self._nondiff)
        self.num_static = len(leaves)
        dynamic, self.in_tree = tree.tree_flatten(args)
        leaves += dynamic

    def check(self, transform: str, fun: Any, leaves: Sequence[Any]) -> None:
        """Raise TypeError if a leaf is not an array. The message names the leaf."""
        check_arguments(transform, fun, leaves[self.num_static :], self.names)

    def names(self) -> list[str]:
        """Return the key path of each leaf of the differentiated arguments: `args[0]['w']`."""
        return leaf_names(self.in_tree, "args")

    def statics(self, leaves: Sequence[Any]) -> list[Any]:
        """Return the arguments that are not differentiated."""
        statics, traced = list(self._static), iter(leaves)
        for k, treedef, parts in self._holes:
            statics[k] = tree.tree_unflatten(treedef, [next(traced) if x is _HOLE else x for x in parts])
        return statics

    def primals(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """Return the differentiated arguments."""
        primals: tuple[Any, ...] = tree.tree_unflatten(self.in_tree, leaves[self.num_static :])
        return primals

    def merged(self, statics: Sequence[Any], primals: Sequence[Any]) -> list[Any]:
        """Return all arguments in order."""
        args = list(primals)
        for i, x in zip(self._nondiff, statics, strict=True):
            args.insert(i, x)
        return args

    def same_as(self, other: Arguments, same: Callable[[Any, Any], bool]) -> bool:
        """Return whether another call has the same structure of arguments and the same nondifferentiated values."""
        return (
            (self.in_tree, self.num_static, self._nondiff) == (other.in_tree, other.num_static, other._nondiff)
            and not (self._holes or other._holes)
            and all(_is_same(same, x, y) for x, y in zip(self._static, other._static, strict=True))
        )

    def unflatten(self, leaves: Sequence[Any]) -> Sequence[Any]:
        """Return all arguments in order, from leaves."""
        primals = self.primals(leaves)
        return self.merged(self.statics(leaves), primals) if self._nondiff else primals


def _is_same(same: Callable[[Any, Any], bool], x: Any, y: Any) -> bool:
    """Compare two of the user's objects; return False if they cannot be compared."""
    if x is y:
        return True
    try:
        hash((x, y))  # an unhashable object may be mutable, or an array
        return same(x, y)
    except Exception:
        return False


class _Hole:
    pass


_HOLE = _Hole()
