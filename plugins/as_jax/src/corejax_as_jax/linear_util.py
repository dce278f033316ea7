"""`jax.extend.linear_util`: functions with transformations around them, and what these report on the side."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from corejax_as_jax import trees


class StoreException(Exception):
    """A store is read before it is written, or written twice."""


class Store:
    """What a transformation reports on the side: written once."""

    def __init__(self, *, equal: bool = False) -> None:
        self._values: list[Any] = []
        self._equal = equal

    def store(self, value: Any) -> None:
        """Write the value.

        Raises:
            StoreException: it is written already, and the values need not or do not agree.
        """
        if self._values and not (self._equal and self._values[0] == value):
            raise StoreException("Store occupied")
        self._values[:] = [value]

    def reset(self) -> None:
        """Forget the value."""
        self._values.clear()

    @property
    def val(self) -> Any:
        """The value.

        Raises:
            StoreException: it is not written yet.
        """
        if not self._values:
            raise StoreException("Store empty")
        return self._values[0]

    def __bool__(self) -> bool:
        return bool(self._values)


class WrappedFun:
    """A function with transformations around it.

    Attributes:
        f: the function inside.
        debug_info: what it is called in messages.
        stores: of the transformations, the outermost first.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        f_transformed: Callable[..., Any],
        transforms: tuple[Any, ...] = (),
        stores: tuple[Store | None, ...] = (),
        params: tuple[tuple[str, Any], ...] = (),
        in_type: Any = None,
        debug_info: Any = None,
    ) -> None:
        self.f = f
        self.f_transformed = f_transformed
        self.transforms = transforms
        self.stores = stores
        self.params = params
        self.in_type = in_type
        self.debug_info = debug_info

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed wrapped function>")

    def wrap(self, gen: Callable[..., Any], static: tuple[Any, ...], store: Store | None) -> WrappedFun:
        """Put one more transformation around the function."""
        head = static if store is None else (store, *static)
        return WrappedFun(
            self.f,
            functools.partial(gen, self.f_transformed, *head),
            ((gen, static), *self.transforms),
            (store, *self.stores),
            self.params,
            None,
            self.debug_info,
        )

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function with its transformations."""
        return self.f_transformed(*args, **kwargs)

    def __hash__(self) -> int:
        return hash((self.f, self.transforms, self.params))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrappedFun) and (self.f, self.transforms, self.params) == (
            other.f,
            other.transforms,
            other.params,
        )


def wrap_init(f: Callable[..., Any], params: Any = None, *, debug_info: Any = None) -> WrappedFun:
    """Return a function without transformations, with keyword arguments bound."""
    params = params or {}
    inner = functools.partial(f, **params) if params else f
    return WrappedFun(f, inner, params=tuple(sorted(params.items())), debug_info=debug_info)


def _curried(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make `function(gen)` a function of the other arguments."""

    def outer(gen: Callable[..., Any], *rest: Any, **options: Any) -> Any:
        if rest:
            return function(gen, *rest, **options)
        return lambda fun, *static, **more: function(gen, fun, *static, **options, **more)

    return functools.wraps(function)(outer)


@_curried
def transformation2(gen: Callable[..., Any], fun: WrappedFun, *static: Any) -> WrappedFun:
    """Transform by `gen(f, *static, *args, **kwargs)`."""
    return fun.wrap(gen, static, None)


@_curried
def transformation_with_aux2(
    gen: Callable[..., Any], fun: WrappedFun, *static: Any, use_eq_store: bool = False
) -> tuple[WrappedFun, Callable[[], Any]]:
    """Transform by `gen(f, store, *static, *args, **kwargs)`; also return the function that reads the store."""
    store = Store(equal=use_eq_store)
    return fun.wrap(gen, static, store), lambda: store.val


@_curried
def transformation(gen: Callable[..., Any], fun: WrappedFun, *static: Any) -> WrappedFun:
    """Transform by a generator that yields the arguments, receives the results, and yields other results."""

    def around(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        running = gen(*args, **kwargs)
        inner_args, inner_kwargs = next(running)
        return running.send(f(*inner_args, **inner_kwargs))

    transformed: WrappedFun = transformation2(around, fun, *static)
    return transformed


@_curried
def transformation_with_aux(
    gen: Callable[..., Any], fun: WrappedFun, *static: Any
) -> tuple[WrappedFun, Callable[[], Any]]:
    """Transform by a generator that yields the results and what it reports on the side in the end."""

    def around(f: Callable[..., Any], store: Store, *args: Any, **kwargs: Any) -> Any:
        running = gen(*args, **kwargs)
        inner_args, inner_kwargs = next(running)
        out, aux = running.send(f(*inner_args, **inner_kwargs))
        store.store(aux)
        return out

    transformed: tuple[WrappedFun, Callable[[], Any]] = transformation_with_aux2(around, fun, *static)
    return transformed


def merge_linear_aux(aux1: Callable[[], Any], aux2: Callable[[], Any]) -> tuple[bool, Any]:
    """Return whether the first of two reports is written, and the one that is.

    Raises:
        StoreException: none is, or both are.
    """
    try:
        out = aux1()
    except StoreException:
        return False, aux2()
    try:
        aux2()
    except StoreException:
        return True, out
    raise StoreException("neither store occupied")


def cache(function: Callable[..., Any]) -> Callable[..., Any]:
    """Memoise a function of a `WrappedFun` and hashable arguments."""
    return functools.lru_cache(maxsize=1024)(function)


# -- jax.api_util ----------------------------------------------------------------------------------------------------


@transformation_with_aux2
def flatten_fun(f: Callable[..., Any], store: Store, in_tree: Any, *flat: Any) -> Any:
    """Make a function of leaves of one of `(args, kwargs)`, of structure `in_tree`; report the result's structure."""
    args, kwargs = in_tree.unflatten(flat)
    leaves, out_tree = trees.tree_flatten(f(*args, **kwargs))
    store.store(out_tree)
    return leaves


@transformation_with_aux2
def flatten_fun_nokwargs(f: Callable[..., Any], store: Store, in_tree: Any, *flat: Any) -> Any:
    """Do as `flatten_fun` for the structure of positional arguments."""
    leaves, out_tree = trees.tree_flatten(f(*in_tree.unflatten(flat)))
    store.store(out_tree)
    return leaves


def argnums_partial(
    f: WrappedFun, argnums: int | Sequence[int], args: Sequence[Any], require_static_args_hashable: bool = True
) -> tuple[WrappedFun, tuple[Any, ...]]:
    """Fix all arguments except some; also return the values of these arguments."""
    numbers = [i % len(args) for i in ((argnums,) if isinstance(argnums, int) else argnums)]

    def around(function: Callable[..., Any], *dynamic: Any, **kwargs: Any) -> Any:
        whole = list(args)
        for i, x in zip(numbers, dynamic, strict=True):
            whole[i] = x
        return function(*whole, **kwargs)

    return f.wrap(around, (), None), tuple(args[i] for i in numbers)


def safe_map(f: Callable[..., Any], *args: Any) -> list[Any]:
    """Map a function over sequences of equal lengths."""
    return [f(*xs) for xs in zip(*args, strict=True)]


def safe_zip(*args: Any) -> list[Any]:
    """Zip sequences of equal lengths to a list."""
    return list(zip(*args, strict=True))


def infer_argnums_and_argnames(signature: Any, argnums: Any, argnames: Any) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Infer positions of arguments from their names, or names from positions."""
    names = list(signature.parameters)
    given = tuple(tuple((v,) if isinstance(v, int | str) else v or ()) for v in (argnums, argnames))
    if argnums is None:
        return tuple(names.index(n) for n in given[1] if n in names), given[1]
    return given[0], given[1] if argnames is not None else tuple(names[i] for i in given[0] if i < len(names))
