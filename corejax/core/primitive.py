"""`Primitive` and `bind`: the operations that interpreters give meaning to.

A primitive is data: a name and some properties. Its rules live in the registries of `corejax.rules`. That package
imports this module, never the reverse; it fills the slot `infer_types` that a primitive calls.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from corejax.base import registered
from corejax.base.plugin_access import plugin_access
from corejax.base.provenance import Provenance
from corejax.base.seams import Signal, Slot
from corejax.base.stubs import import_name
from corejax.base.tables import Table
from corejax.core.avals import Operands, Params, ShapedArray, array_method
from corejax.core.trace import Tracer, set_current_trace, state
from corejax.errors import PluginMissingError
from corejax.messages import source_info
from corejax.settings.caches import clears_cache

__corejax_registers_for_caller__ = True


primitives: Table[str, Primitive] = registered.primitives

# All primitives that are alive, including those that were removed from the table: their memos have to be cleared too.
_instances: weakref.WeakSet[Primitive] = weakref.WeakSet()

# Runs the abstract-eval rule of a primitive and memoises its result in `Primitive._memo`.
infer_types: Slot[Callable[[Primitive, tuple[ShapedArray, ...], dict[str, Any]], tuple[ShapedArray, ...]]] = Slot(
    "type inference"
)
# Sent when an application raises, with the exception and the primitive.
failed = Signal("failed applications")


class Primitive:
    """An operation that interpreters give meaning to; immutable once built.

    Array operands are positional; `params` are static and hashable.

    Args:
        name: the name that jaxprs print, unique among primitives. A dotted name starts with its plugin's namespace.
        multiple_results: whether `bind` returns a list of values rather than one value.
        effects: names of side effects; dead-code elimination keeps equations that have effects. Effects with names
            that start with `ordered:` happen in program order.
        linear_in: positions of the operands in which the primitive is linear.
        tags: free words that transformations and tools consult ("elementwise", "linear", "higher_order"; "structural":
            it moves elements of any dtype; "exact": it does not round, so that all its rules agree bit for bit;
            "reduction": it reduces axes; "cheap": recomputing the result takes less time than reading it from memory;
            "placing": its abstract-eval rule determines the sharding of the result).
        decomposition: the primitive in terms of others, `f(*args, **params) -> out`; missing rules are derived from it.
        impl, abstract_eval, jvp, vmap, transpose: rules, as if registered one by one.
        doc: what it computes; by default the docstring of the decomposition or impl.

    Raises:
        DuplicateRegistrationError: another owner has defined a primitive of that name.
        TypeError: the name is not a non-empty string, or a rule is not callable.
    """

    __slots__ = (
        *("__weakref__", "_memo", "decomposition", "doc", "effects"),
        *("linear_in", "multiple_results", "name", "provenance", "tags"),
    )

    name: str
    multiple_results: bool
    effects: frozenset[str]
    linear_in: tuple[int, ...]
    tags: frozenset[str]
    decomposition: Callable[..., Any] | None
    provenance: Provenance
    doc: str
    _memo: dict[Any, tuple[ShapedArray, ...]]  # types of results; `rules.abstract_eval` fills it

    # JAX's primitives have these flags. Here calls and maps are ordinary primitives, so the flags are always False.
    call_primitive = map_primitive = False

    def __init__(
        self,
        name: str,
        *,
        multiple_results: bool = False,
        effects: Iterable[str] = (),
        linear_in: Iterable[int] = (),
        tags: Iterable[str] = (),
        decomposition: Callable[..., object] | None = None,
        impl: Callable[..., object] | None = None,
        abstract_eval: Callable[..., object] | None = None,
        jvp: Callable[..., object] | None = None,
        vmap: Callable[..., object] | None = None,
        transpose: Callable[..., object] | None = None,
        doc: str | None = None,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise TypeError(f"a primitive's name is a non-empty string, got {name!r}")
        if isinstance(effects, str) or isinstance(tags, str):
            raise TypeError(f"primitive {name!r}: effects and tags are collections of strings, not one string")
        effects, tags = tuple(effects), tuple(tags)
        for word in (*effects, *tags):
            if not isinstance(word, str):
                raise TypeError(f"primitive {name!r}: effects and tags are strings, got {word!r}")
        if doc is None:
            doc = (getattr(decomposition or impl, "__doc__", None) or "") if decomposition or callable(impl) else ""
        fields: dict[str, Any] = {
            "name": name,
            "multiple_results": bool(multiple_results),
            "effects": frozenset(effects),
            "linear_in": _positions(name, linear_in),
            "tags": frozenset(tags),
            "decomposition": decomposition,
            "provenance": Provenance.of_caller(),
            "doc": doc,
            "_memo": {},
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)
        primitives.register(name, self, provenance=self.provenance)
        _instances.add(self)
        import_name("corejax.programs", "")  # with all rule kinds and derivations, if only this module was imported
        rules = {"impl": impl, "abstract_eval": abstract_eval, "jvp": jvp, "vmap": vmap, "transpose": transpose}
        for kind, rule in rules.items():
            if rule is not None:
                registered.registries[kind].register(self, rule)

    def bind(self, *args: object, **params: object) -> Any:
        """Apply the primitive: the trace on top of the stack interprets it.

        Returns:
            One value, or a list if `multiple_results`.

        Raises:
            MissingRuleError: an interpreter needs a rule that the primitive does not have.
            TypeError: an operand is not an array, or the operands' types do not fit.
        """
        try:
            out = state.trace.process_primitive(self, args, params)
        except Exception as error:
            methods = [array_method(type(x)) for x in args]
            if not any(methods):
                failed.send(error, self)
                raise
        else:
            return out if self.multiple_results else out[0]
        # An interpreter recognises only its own tracers, so objects with `__corejax_array__` fail. Converting them only
        # after a failure keeps the check off the path of ordinary operands.
        values = [x if array_of is None else array_of(x) for x, array_of in zip(args, methods, strict=True)]
        return self.bind(*values, **params)

    def bind_with_trace(self, trace: Any, args: Operands, avals: object, params: Mapping[str, object], /) -> Any:
        """Apply the primitive as `bind` does, interpreted by `trace`; has JAX's name and arguments."""
        with set_current_trace(trace):
            return self.bind(*args, **params)

    def get_bind_params(self, params: Mapping[str, object]) -> dict[str, Any]:
        """Return the parameters for `bind` from those of an equation, which are the same; JAX's name for it."""
        return dict(params)

    def abstract(self, avals: tuple[ShapedArray, ...], params: Params) -> tuple[ShapedArray, ...]:
        """Return the types of the outputs, memoised on (avals, params).

        The memo belongs to the primitive, and avals are interned, so that a hit costs one dict lookup. The cache is
        correct because an abstract-eval rule is a pure function of its arguments; `infer_types` fills it.

        Raises:
            TypeError: a parameter is not hashable, or the abstract-eval rule refuses the operands.
        """
        try:
            outs = self._memo.get((avals, tuple(params.items())) if params else avals)
        except TypeError:
            _check_hashable(self, params)
            outs = None
        return infer_types.get()(self, avals, params) if outs is None else outs

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"primitive {self.name!r} is frozen: pass {name!r} when it is created, and register rules in the registries"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (_by_name, (self.name, self.provenance.distribution, self.provenance.version))

    def __copy__(self) -> Primitive:
        return self

    def __deepcopy__(self, memo: object) -> Primitive:
        return self

    def __repr__(self) -> str:
        return f"Primitive({self.name!r})"

    def __str__(self) -> str:
        return self.name


def _check_hashable(primitive: Primitive, params: Params) -> None:
    for name, value in params.items():
        try:
            hash(value)
        except TypeError:
            what = "a traced value" if isinstance(value, Tracer) else f"{value!r} of type {type(value).__name__}"
            raise TypeError(
                f"parameter {name!r} of primitive {primitive.name!r} has to be static and hashable, got {what} "
                f"at {source_info.user_line()}. Pass array data as an operand; use tuples instead of lists."
            ) from None


def _positions(name: str, linear_in: Any) -> tuple[int, ...]:
    try:
        positions = tuple(linear_in)
    except TypeError:
        positions = (None,)
    if not all(type(i) is int and i >= 0 for i in positions):
        raise TypeError(f"primitive {name!r}: linear_in is a tuple of operands' positions from 0, got {linear_in!r}")
    return positions


def _by_name(name: str, distribution: str | None = None, version: str | None = None) -> Primitive:
    """Return the primitive of a name that was pickled.

    Raises:
        PluginMissingError: no installed plugin defines it; the message names the distribution that did.
    """
    primitive = find_primitive(name)
    if primitive is not None:
        return primitive
    home = "a module that is not imported here"
    if distribution is not None:
        provider = plugin_access().whose_primitive(name, distribution)
        pin = f"=={version}" if version else ""
        advice = f"pip install {distribution}{pin}" if "pip install" in provider else provider
        home = f"{distribution} {version or ''}".rstrip() + f" ({advice})"
    notes = "".join(f"; note: {problem}" for problem in plugin_access().problems("primitives"))
    raise PluginMissingError(f"there is no primitive {name!r}: the pickled object was created with {home}{notes}")


def find_primitive(name: str) -> Primitive | None:
    """Return the primitive of a name, or None if no installed plugin defines it.

    A plugin uses it to register rules for another plugin's primitive. Plugins are loaded only if the name is unknown.
    """
    if name not in primitives:
        plugin_access().load_primitives()
    return primitives.get(name)


def flat_decomposition(primitive: Primitive) -> Callable[..., list[Any]] | None:
    """Return the decomposition as a function that returns a list of outputs, or None if the primitive has none.

    A `Derivation` runs that function under the interpreter that lacks a rule: it binds primitives that have rules.
    """
    body = primitive.decomposition
    if body is None:
        return None

    def flat(*args: object, **params: object) -> list[Any]:
        return results_of_body(primitive, body(*args, **params))

    return flat


def results_of_body(primitive: Primitive, out: Any) -> list[Any]:
    """Return the results of a decomposition as a list.

    Raises:
        TypeError: the decomposition returned a sequence for one result, no sequence for several results, or None.
    """
    sequence = isinstance(out, list | tuple)
    if out is None or sequence is not primitive.multiple_results:
        kind = "nothing (None)" if out is None else f"a {type(out).__name__} of {len(out)}" if sequence else "one value"
        wanted = "a sequence of results" if primitive.multiple_results else "one result"
        advice = " Create a primitive with several results with multiple_results=True." if sequence else ""
        raise TypeError(
            f"the decomposition of primitive {primitive.name!r}, from {primitive.provenance}, returned {kind} instead "
            f"of {wanted}.{advice}"
        )
    return list(out) if sequence else [out]


@clears_cache
def _forget_all_avals() -> None:
    for primitive in list(_instances):
        primitive._memo.clear()
