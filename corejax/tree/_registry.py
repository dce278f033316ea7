"""Registration of classes as pytree nodes."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import methodcaller
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
    """Register a class as a pytree node.

    Args:
        nodetype: the class. Its subclasses are not registered.
        flatten_func: `node -> (children, metadata)`; metadata must be comparable, and hashable or containers (lists,
            dicts, sets, dataclasses) of hashable values.
        unflatten_func: `(metadata, children) -> node`. Children may be any objects, not only arrays.
        flatten_with_keys_func: `node -> (((key, child), ...), metadata)`, for key paths.

    Raises:
        ValueError: the class is a node already; the message names the module that registered it.
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
    nodetype: type, flatten_with_keys: FlattenWithKeys, unflatten_func: Unflatten, flatten_func: Flatten | None = None
) -> None:
    """Register a class as a pytree node with keys for its children.

    Args:
        nodetype: the class. Its subclasses are not registered.
        flatten_with_keys: `node -> (((key, child), ...), metadata)`; keys are `GetAttrKey`, `DictKey`,
            `SequenceKey`, or anything with a `str`.
        unflatten_func: `(metadata, children) -> node`.
        flatten_func: `node -> (children, metadata)`, used if keys are not needed.

    Raises:
        ValueError: the class is a node already.
    """

    def flatten(node: object) -> tuple[Iterable[Any], Hashable]:
        children, metadata = flatten_with_keys(node)
        return [child for _, child in children], metadata

    register_pytree_node(nodetype, flatten_func or flatten, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: T) -> T:
    """Register the decorated class by its `tree_flatten()` and class method `tree_unflatten(metadata, children)`."""
    register_pytree_node(cls, methodcaller("tree_flatten"), cls.tree_unflatten)  # type: ignore[attr-defined]  # JAX's
    return cls


def register_pytree_with_keys_class(cls: T) -> T:
    """Register the decorated class as `register_pytree_node_class` does, with keys by `tree_flatten_with_keys()`."""
    register_pytree_with_keys(
        cls,
        methodcaller("tree_flatten_with_keys"),
        cls.tree_unflatten,  # type: ignore[attr-defined]  # JAX's
        methodcaller("tree_flatten") if hasattr(cls, "tree_flatten") else None,
    )
    return cls


def _checked_fields(
    nodetype: type, data: Sequence[str] | None, meta: Sequence[str] | None, drop: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the data and meta fields, inferred if they are None, after a check against the constructor's fields."""
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
        init_fields = {f.name for f in dataclasses.fields(nodetype) if f.init} - {*drop}
        if missing := sorted(init_fields - {*data, *meta}):
            raise ValueError(
                f"register_dataclass({name}): neither data nor meta: {', '.join(missing)}; "
                "a field with a default may be listed in drop_fields"
            )
        if unexpected := sorted({*data, *meta} - init_fields):
            raise ValueError(
                f"register_dataclass({name}): {', '.join(unexpected)} cannot be passed to the constructor "
                "(no such field, a field with init=False, or one of drop_fields)"
            )
    return tuple(data), tuple(meta)


def register_dataclass(
    nodetype: T,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> T:
    """Register a dataclass as a pytree node; may be used as a decorator.

    Args:
        nodetype: a dataclass, or a class with a constructor that takes its attributes as keywords.
        data_fields: names of the fields that are children.
        meta_fields: names of the fields that are metadata: hashable, part of the structure. If both lists are
            left out, fields declared with `dataclasses.field(metadata=dict(static=True))` are metadata and the
            others are data.
        drop_fields: names of fields that are dropped; the constructor sets their defaults.

    Raises:
        ValueError: the fields differ from those of the dataclass, or the class is a node already.
        TypeError: one of the two lists is missing, or both are and the class is not a dataclass.
    """
    data, meta = _checked_fields(nodetype, data_fields, meta_fields, drop_fields)
    keys = tuple(map(GetAttrKey, data))

    def flatten(node: object) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return tuple([getattr(node, name) for name in data]), tuple([getattr(node, name) for name in meta])

    def flatten_with_keys(node: object) -> tuple[Iterable[tuple[Any, Any]], tuple[Any, ...]]:
        children, metadata = flatten(node)
        return tuple(zip(keys, children, strict=True)), metadata

    def unflatten(metadata: tuple[object, ...], children: Iterable[object]) -> Any:
        return nodetype(**dict(zip(data, children, strict=True)), **dict(zip(meta, metadata, strict=True)))

    register_pytree_node(nodetype, flatten, unflatten, flatten_with_keys)
    return nodetype


def static(**kwargs: Any) -> Any:
    """Declare a field as `dataclasses.field` does, such that `register_dataclass` makes it metadata."""
    return dataclasses.field(**{**kwargs, "metadata": {**(kwargs.get("metadata") or {}), "static": True}})


def register_static(cls: T) -> T:
    """Register the decorated class as a node without leaves: its instances, hashable, are part of the structure."""
    register_pytree_node(cls, lambda node: ((), node), lambda node, _: node, lambda node: ((), node))
    return cls


class _Opaque:
    """A wrapper around a `functools.partial`, with which an outer partial does not merge."""

    __slots__ = ("fun",)

    def __init__(self, fun: Callable[..., object]) -> None:
        self.fun = fun

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self.fun(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return self.fun == (other.fun if isinstance(other, _Opaque) else other)

    def __hash__(self) -> int:
        return hash(self.fun)

    def __repr__(self) -> str:
        return repr(self.fun)


class Partial(functools.partial[Any]):
    """`functools.partial` that is a pytree: bound arguments are children, the function is metadata.

    If the function is itself a partial, the arguments bound in it are metadata and not children.
    """

    def __new__(cls, func: Callable[..., object], *args: object, **kwargs: object) -> Partial:
        # functools.partial would merge the bound arguments of another partial into its own.
        boxed = _Opaque(func) if isinstance(func, functools.partial) else func
        return super().__new__(cls, boxed, *args, **kwargs)


register_pytree_node(
    Partial,
    lambda partial: ((partial.args, partial.keywords), partial.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
)
