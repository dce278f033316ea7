"""Registering classes as pytree nodes."""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from corejax.base.provenance import Provenance
from corejax.errors import DuplicateRegistrationError
from corejax.tree._paths import GetAttrKey
from corejax.tree._treedef import Registration, is_tree_node, leaf_types, registered

__corejax_registers_for_caller__ = True

T = TypeVar("T", bound=type)
Flatten = Callable[[Any], tuple[Iterable[Any], Hashable]]
FlattenWithKeys = Callable[[Any], tuple[Iterable[tuple[Any, Any]], Hashable]]
Unflatten = Callable[[Any, Any], Any]


def register_pytree_node(
    nodetype: type,
    flatten_func: Flatten,
    unflatten_func: Unflatten,
    flatten_with_keys_func: FlattenWithKeys | None = None,
) -> None:
    """Make instances of exactly this class nodes.

    Args:
        nodetype: the class. Subclasses are not affected.
        flatten_func: `node -> (children, metadata)`; metadata are comparable, and hashable or containers (lists,
            dicts, sets, dataclasses) of what is.
        unflatten_func: `(metadata, children) -> node`. Children may be any objects, not only arrays.
        flatten_with_keys_func: `node -> (((key, child), ...), metadata)`, for key paths.

    Raises:
        ValueError: the class is a node already; the message names who registered it.
    """
    if not isinstance(nodetype, type):
        raise TypeError(f"expected a class to register as pytree node, got {nodetype!r}")
    owner, name = Provenance.of_caller(), f"{nodetype.__module__}.{nodetype.__qualname__}"
    if is_tree_node(nodetype):
        by = f"by {registered.provenance(nodetype)}" if nodetype in registered else "built in"
        raise DuplicateRegistrationError(f"{name} is a pytree node already: registered {by}, and again by {owner}")
    if nodetype in leaf_types:
        raise ValueError(f"{name} is a leaf: it cannot be a node")
    registered.register(nodetype, Registration(flatten_func, unflatten_func, flatten_with_keys_func), provenance=owner)


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: FlattenWithKeys,
    unflatten_func: Unflatten,
    flatten_func: Flatten | None = None,
) -> None:
    """Make instances of exactly this class nodes whose children have keys.

    Args:
        nodetype: the class.
        flatten_with_keys: `node -> (((key, child), ...), metadata)`; keys are `GetAttrKey`, `DictKey`,
            `SequenceKey`, or anything with a `str`.
        unflatten_func: `(metadata, children) -> node`.
        flatten_func: `node -> (children, metadata)`, used where no keys are asked for.

    Raises:
        ValueError: the class is a node already.
    """

    def flatten(node: Any) -> tuple[Iterable[Any], Hashable]:
        children, metadata = flatten_with_keys(node)
        return [child for _, child in children], metadata

    register_pytree_node(nodetype, flatten_func or flatten, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: T) -> T:
    """Class decorator: a node by `tree_flatten()` and class method `tree_unflatten(metadata, children)`."""
    register_pytree_node(cls, operator.methodcaller("tree_flatten"), cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def register_pytree_with_keys_class(cls: T) -> T:
    """Class decorator: as `register_pytree_node_class`, with keys by `tree_flatten_with_keys(self)`."""
    register_pytree_with_keys(
        cls,
        operator.methodcaller("tree_flatten_with_keys"),
        cls.tree_unflatten,  # type: ignore[attr-defined]
        operator.methodcaller("tree_flatten") if hasattr(cls, "tree_flatten") else None,
    )
    return cls


def _checked_fields(
    nodetype: type, data: Sequence[str] | None, meta: Sequence[str] | None, drop: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Data and meta fields, given or inferred, after a check that they are what the constructor takes."""
    name = nodetype.__qualname__
    if (data is None) != (meta is None):
        raise TypeError(f"register_dataclass({name}): give both data_fields and meta_fields, or neither")
    is_dataclass = dataclasses.is_dataclass(nodetype)
    if data is None or meta is None:
        if not is_dataclass:
            raise TypeError(f"register_dataclass({name}): not a dataclass, so give data_fields, meta_fields")
        fields = [f for f in dataclasses.fields(nodetype) if f.name not in drop]
        data = [f.name for f in fields if not f.metadata.get("static", False)]
        meta = [f.name for f in fields if f.metadata.get("static", False)]
    if both := sorted({*data} & {*meta}):
        raise ValueError(f"register_dataclass({name}): both data and meta: {', '.join(both)}")
    if is_dataclass:
        taken = {f.name for f in dataclasses.fields(nodetype) if f.init} - {*drop}
        if missing := sorted(taken - {*data, *meta}):
            raise ValueError(
                f"register_dataclass({name}): neither data nor meta: {', '.join(missing)}; "
                "a field with a default may be listed in drop_fields"
            )
        if unexpected := sorted({*data, *meta} - taken):
            raise ValueError(
                f"register_dataclass({name}): {', '.join(unexpected)} cannot be given to the constructor "
                "(no such field, one with init=False, or one of drop_fields)"
            )
    return tuple(data), tuple(meta)


def register_dataclass(
    nodetype: T,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> T:
    """Make a dataclass a node; also a decorator.

    Args:
        nodetype: a dataclass, or a class whose constructor takes its attributes as keywords.
        data_fields: names of the fields that are children.
        meta_fields: names of the fields that are metadata: hashable, part of the structure. If both lists are
            left out, fields declared with `dataclasses.field(metadata=dict(static=True))` are metadata, the
            others data.
        drop_fields: fields that are not kept; the constructor gives them their defaults.

    Raises:
        ValueError: the fields are not those of the dataclass, or the class is a node already.
        TypeError: one of the two lists is missing, or both and the class is no dataclass.
    """
    data, meta = _checked_fields(nodetype, data_fields, meta_fields, drop_fields)
    keys = tuple(map(GetAttrKey, data))

    def flatten(node: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return tuple([getattr(node, name) for name in data]), tuple([getattr(node, name) for name in meta])

    def flatten_with_keys(node: Any) -> tuple[Iterable[tuple[Any, Any]], tuple[Any, ...]]:
        children, metadata = flatten(node)
        return tuple(zip(keys, children, strict=True)), metadata

    def unflatten(metadata: tuple[Any, ...], children: Iterable[Any]) -> Any:
        return nodetype(**dict(zip(data, children, strict=True)), **dict(zip(meta, metadata, strict=True)))

    register_pytree_node(nodetype, flatten, unflatten, flatten_with_keys)
    return nodetype


def static(**kwargs: Any) -> Any:
    """A field, declared as by `dataclasses.field`, that `register_dataclass` takes for metadata."""
    return dataclasses.field(**{**kwargs, "metadata": {**(kwargs.get("metadata") or {}), "static": True}})


def register_static(cls: T) -> T:
    """Class decorator: instances, which must be hashable, are nodes without leaves: part of the structure."""
    register_pytree_node(cls, lambda node: ((), node), lambda node, _: node, lambda node: ((), node))
    return cls


class _Opaque:
    """A callable in a box, which `functools.partial` does not merge with."""

    __slots__ = ("fun",)

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fun(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return self.fun == (other.fun if isinstance(other, _Opaque) else other)

    def __hash__(self) -> int:
        return hash(self.fun)

    def __repr__(self) -> str:
        return repr(self.fun)


class Partial(functools.partial):
    """`functools.partial` that is a pytree: bound arguments are children, the function is metadata.

    Arguments bound in a partial that is itself given as the function are not children.
    """

    def __new__(cls, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Partial:
        # functools.partial would take over the bound arguments of another partial.
        boxed = _Opaque(func) if isinstance(func, functools.partial) else func
        return super().__new__(cls, boxed, *args, **kwargs)


register_pytree_node(
    Partial,
    lambda partial: ((partial.args, partial.keywords), partial.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
)
