"""Operators and methods of arrays and tracers: names known to the kernel, meanings given by plugins.

Until a plugin has provided one, an operator's stub asks for the plugins to be loaded and tries again.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Mapping
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from corejax.base.plugin_access import plugin_access
from corejax.base.provenance import Provenance
from corejax.base.tables import Table
from corejax.base.texts import error_text
from corejax.core.avals import ShapedArray
from corejax.core.contributed import Contributed
from corejax.errors import DuplicateRegistrationError, PluginError, PluginMissingError

T = TypeVar("T")

BINARY = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "matmul"),
    *("and", "or", "xor", "lshift", "rshift"),
)
OPERATORS = (
    *(f"__{name}__" for name in BINARY),
    *(f"__r{name}__" for name in BINARY),
    *(f"__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "abs", "invert")),
    *("__getitem__", "__round__", "__array_namespace__"),
)

_FROM_PLUGINS = ("__add__", "sum")  # one method of each plugin that provides NumPy's


def _put(name: str, value: Any) -> None:
    if value is not None:
        setattr(ArrayMethods, name, _Deferred(name, value) if isinstance(value, str) else value)
    elif name in OPERATORS:
        setattr(ArrayMethods, name, _stub(name))
        all_are_here(False)
    elif name in vars(ArrayMethods):
        delattr(ArrayMethods, name)


class _Deferred:
    """A method of which a plugin has told the place: imported when it is first looked up, and then in its stead."""

    __slots__ = ("name", "target")

    def __init__(self, name: str, target: str) -> None:
        self.name = name
        self.target = target

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        module, _, attribute = self.target.partition(":")
        what = f"array method {self.name!r} of {methods.provenance(self.name).owner}"
        try:
            found = getattr(importlib.import_module(module), attribute, None)
        except Exception as error:
            raise PluginError(f"{what} is to be at {self.target}, which failed: {error_text(error)}") from error
        value = found.get(self.name) if isinstance(found, Mapping) else found
        if value is None:
            raise PluginError(f"{what} is to be at {self.target}; there is none")
        if vars(ArrayMethods).get(self.name) is self:
            setattr(ArrayMethods, self.name, value)
        bind = getattr(type(value), "__get__", None)
        return value if bind is None else bind(value, instance, owner)


methods: Table[str, Any] = Table("array method", changed=_put, of_hooks=True)


class ArrayMethods(Contributed):
    """Base of `Array` and `Tracer`: what both are by their type, and everything that a plugin provides.

    Attributes:
        aval: the value's type.
    """

    __slots__ = ()

    aval: ShapedArray
    __array_priority__ = 1000  # NumPy's operators leave the operation to ours

    @property
    def shape(self) -> tuple[int, ...]:
        """Dimensions, a tuple of int even while tracing."""
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy dtype."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.aval.size

    @property
    def weak_type(self) -> bool:
        """Whether the dtype came from a Python scalar and yields to others."""
        return self.aval.weak_type

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.aval.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.aval.size * self.aval.dtype.itemsize

    def _scalar(self, kind: Callable[[Any], T], what: str) -> T:
        """Convert the one element by `kind`, for Python's `what`."""
        raise NotImplementedError(f"{type(self).__name__}._scalar")

    def __int__(self) -> int:
        return self._scalar(int, "int()")

    def __float__(self) -> float:
        return self._scalar(float, "float()")

    def __complex__(self) -> complex:
        return self._scalar(complex, "complex()")

    def __trunc__(self) -> int:
        return self._scalar(math.trunc, "math.trunc()")  # type: ignore[no-any-return]

    def __floor__(self) -> int:
        return self._scalar(math.floor, "math.floor()")  # type: ignore[no-any-return]

    def __ceil__(self) -> int:
        return self._scalar(math.ceil, "math.ceil()")  # type: ignore[no-any-return]

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d array")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError(f"iteration over a 0-d array: {self!r}")
        return (self[i] for i in range(self.shape[0]))

    def __contains__(self, value: Any) -> bool:
        equal: Any = self == value
        return bool(equal.any()) if isinstance(equal, ArrayMethods) else bool(equal)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError(
            "arrays are immutable: x[index] = value is not defined. Make a new one: x = x.at[index].set(value), "
            "and x = x.at[index].add(value) in place of x[index] += value"
        )

    def __delitem__(self, index: Any) -> None:
        raise TypeError(
            "arrays are immutable: del x[index] is not defined. Make a new one: x = corejax.numpy.delete(x, index)"
        )

    if not TYPE_CHECKING:  # so that type checkers report misspelt names

        def __getattr__(self, name: str) -> Any:
            return missing(self, name)


def missing(x: Any, name: str) -> Any:
    """An attribute that no plugin has provided yet. Private names are never provided.

    Raises:
        AttributeError: no plugin provides it.
    """
    if not name.startswith("_") and name not in methods:
        plugin_access().load()
        if name in methods:
            return getattr(x, name)
    whose = plugin_access().whose_method(name)
    raise AttributeError(f"{type(x).__name__!r} object has no attribute {name!r}{whose}", name=name, obj=x)


# By name, because type checkers are not shown `__getattr__`: they report misspelt attributes of arrays.
_asks = vars(ArrayMethods)["__getattr__"]


def all_are_here(loaded: bool) -> None:
    """Drop `ArrayMethods.__getattr__`, which loads plugins, once all of them are loaded.

    Before Python 3.12, attributes of a class with `__getattr__` take six times as long to read: tracing takes a tenth
    less time without.
    """
    if not loaded or any(name not in methods for name in _FROM_PLUGINS):
        setattr(ArrayMethods, "__getattr__", _asks)  # noqa: B010
    elif "__getattr__" in vars(ArrayMethods):
        delattr(ArrayMethods, "__getattr__")


def _stub(name: str) -> Callable[..., Any]:
    def operator(self: Any, *args: Any) -> Any:
        plugin_access().load()
        if name not in methods:
            whose = plugin_access().whose_method(name)
            raise PluginMissingError(f"no plugin provides the operator {name} of arrays{whose}")
        return getattr(self, name)(*args)

    operator.__name__ = name
    return operator


for _name in OPERATORS:
    setattr(ArrayMethods, _name, _stub(_name))


def provide(name: str, value: Any, *, override: bool = False, by: Provenance | None = None) -> None:
    """Give arrays and tracers a method, operator or property.

    Args:
        name: of the attribute.
        value: the method, or a property; or its place, `"module:object"`, from where it is imported when it is first
            used. The object may be a mapping that has it under its name.
        override: replace another one, on purpose.
        by: its provenance, by default the caller.

    Raises:
        ValueError: `name` is none that arrays could have, or `value` is text and no place.
        DuplicateRegistrationError: another plugin provides `name` and `override` is not given, or the kernel does.
    """
    owner = Provenance.of(value.fget if isinstance(value, property) else value, by)
    word = isinstance(name, str) and name.isidentifier() and not iskeyword(name)
    if word and name not in methods and name in vars(ArrayMethods) and name not in OPERATORS:
        raise DuplicateRegistrationError(f"array attribute {name!r} is the kernel's own; {owner} cannot provide it")
    if not word or (name.startswith("_") and name not in OPERATORS):
        raise ValueError(f"an array method's name is a public word or one of Python's operators, got {name!r}")
    if isinstance(value, str) and value.count(":") != 1:
        raise ValueError(f"array method {name!r}: a place is 'module:object', got {value!r}")
    methods.register(name, value, override=override, provenance=owner)
