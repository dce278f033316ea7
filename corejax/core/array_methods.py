"""Operators and methods of arrays and tracers: the kernel knows the operators' names, plugins provide the functions.

An operator that no plugin has provided yet is a stub, which loads the plugins and tries again.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Mapping
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, TypeVar

from corejax.base.plugin_access import plugin_access
from corejax.base.provenance import Provenance
from corejax.base.tables import Table
from corejax.base.texts import error_text
from corejax.core.contributed import Contributed
from corejax.errors import DuplicateRegistrationError, PluginError, PluginMissingError
from corejax.messages.homes import homes

if TYPE_CHECKING:
    import numpy as np

    from corejax.core.avals import ShapedArray

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

# One method of each plugin that provides NumPy's operators and methods: if both are present, no method can be missing.
_FROM_PLUGINS = ("__add__", "sum")


def _put(name: str, value: object) -> None:
    if value is not None:
        setattr(ArrayMethods, name, _Deferred(name, value) if isinstance(value, str) else value)
    elif name in OPERATORS:
        setattr(ArrayMethods, name, _stub(name))
        set_plugins_loaded(False)
    elif name in vars(ArrayMethods):
        delattr(ArrayMethods, name)


class _Deferred:
    """A method that a plugin has named by its import path; the first lookup imports it and replaces this descriptor."""

    __slots__ = ("name", "target")

    def __init__(self, name: str, target: str) -> None:
        self.name = name
        self.target = target

    def __get__(self, instance: object, owner: object = None) -> Any:
        module, _, attribute = self.target.partition(":")
        what = f"array method {self.name!r} of {methods.provenance(self.name).owner}"
        try:
            target = getattr(importlib.import_module(module), attribute, None)
        except Exception as error:
            raise PluginError(f"{what} cannot be imported from {self.target}: {error_text(error)}") from error
        value = target.get(self.name) if isinstance(target, Mapping) else target
        if value is None:
            raise PluginError(f"{what} does not exist at {self.target}")
        if vars(ArrayMethods).get(self.name) is self:
            setattr(ArrayMethods, self.name, value)
        bind = getattr(type(value), "__get__", None)
        return value if bind is None else bind(value, instance, owner)


methods: Table[str, Any] = Table("array method", changed=_put, of_hooks=True)


class ArrayMethods(Contributed):
    """Base of `Array` and `Tracer`: the attributes that follow from the type, and those that plugins provide.

    Attributes:
        aval: the value's type.
    """

    __slots__ = ()

    aval: ShapedArray
    __array_priority__ = 1000  # NumPy's operators leave the operation to ours

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, a tuple of int even while tracing."""
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype:
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
        """Whether the dtype came from a Python scalar, so that other dtypes take precedence in promotion."""
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
        return self._scalar(math.trunc, "math.trunc()")  # type: ignore[no-any-return]  # of any type for `math`

    def __floor__(self) -> int:
        return self._scalar(math.floor, "math.floor()")  # type: ignore[no-any-return]  # of any type for `math`

    def __ceil__(self) -> int:
        return self._scalar(math.ceil, "math.ceil()")  # type: ignore[no-any-return]  # of any type for `math`

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d array")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError(f"iteration over a 0-d array: {self!r}")
        return (self[i] for i in range(self.shape[0]))

    def __contains__(self, value: object) -> bool:
        equal: Any = self == value
        return bool(equal.any()) if isinstance(equal, ArrayMethods) else bool(equal)

    def __setitem__(self, index: object, value: object) -> None:
        raise TypeError(
            "arrays are immutable: x[index] = value is not defined. Make a new one: x = x.at[index].set(value), "
            "and x = x.at[index].add(value) in place of x[index] += value"
        )

    def __delitem__(self, index: object) -> None:
        raise TypeError(
            "arrays are immutable: del x[index] is not defined. Make a new one: x = corejax.numpy.delete(x, index)"
        )

    if not TYPE_CHECKING:  # so that type checkers report misspelt names

        def __getattr__(self, name: str) -> Any:
            return missing(self, name)


def missing(x: object, name: str) -> Any:
    """Return an attribute that is missing until the plugins are loaded; private names are never provided.

    Raises:
        AttributeError: no plugin provides it.
    """
    if not name.startswith("_") and name not in methods:
        plugin_access().load(homes("array_methods").values())
        if name in methods:
            return getattr(x, name)
    advice = plugin_access().whose_method(name)
    raise AttributeError(f"{type(x).__name__!r} object has no attribute {name!r}{advice}", name=name, obj=x)


# Read from the class's dict because `__getattr__` is hidden from type checkers.
_loading_getattr = vars(ArrayMethods)["__getattr__"]


def set_plugins_loaded(loaded: bool) -> None:
    """Remove `ArrayMethods.__getattr__`, which loads plugins, once all plugins are loaded.

    Before Python 3.12, reading attributes of a class that has `__getattr__` takes six times as long; without it,
    tracing takes a tenth less time.
    """
    if not loaded or any(name not in methods for name in _FROM_PLUGINS):
        setattr(ArrayMethods, "__getattr__", _loading_getattr)  # noqa: B010
    elif "__getattr__" in vars(ArrayMethods):
        delattr(ArrayMethods, "__getattr__")


def _stub(name: str) -> Callable[..., Any]:
    def operator(self: object, *args: object) -> Any:
        plugin_access().load(homes("array_methods").values())
        if name not in methods:
            advice = plugin_access().whose_method(name)
            raise PluginMissingError(f"no plugin provides the operator {name} of arrays{advice}")
        return getattr(self, name)(*args)

    operator.__name__ = name
    return operator


for _name in OPERATORS:
    setattr(ArrayMethods, _name, _stub(_name))


def provide(name: str, value: object, *, override: bool = False, by: Provenance | None = None) -> None:
    """Give arrays and tracers a method, operator or property.

    Args:
        name: the attribute's name.
        value: a method or a property; or its import path, `"module:object"`, from which it is imported on first use.
            The object may be a mapping from names of attributes to their values.
        override: replace the attribute of another plugin.
        by: the provenance, by default the caller.

    Raises:
        ValueError: `name` is neither a public name nor an operator, or `value` is a string but not an import path.
        DuplicateRegistrationError: the kernel provides `name`, or another plugin does and `override` is False.
    """
    owner = Provenance.of(value.fget if isinstance(value, property) else value, by)
    is_word = isinstance(name, str) and name.isidentifier() and not iskeyword(name)
    if is_word and name not in methods and name in vars(ArrayMethods) and name not in OPERATORS:
        raise DuplicateRegistrationError(f"array attribute {name!r} is the kernel's own; {owner} cannot provide it")
    if not is_word or (name.startswith("_") and name not in OPERATORS):
        raise ValueError(f"an array method's name is a public word or one of Python's operators, got {name!r}")
    if isinstance(value, str) and value.count(":") != 1:
        raise ValueError(f"array method {name!r}: an import path has the form 'module:object', got {value!r}")
    methods.register(name, value, override=override, provenance=owner)
