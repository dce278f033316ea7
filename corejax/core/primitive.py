"""`Primitive` and `bind`: the operations that interpreters give meaning to.

A primitive is data. Its rules are in registries of `corejax.rules`, which imports this module and not the reverse, and
provides what a primitive needs of them: `define_rules` and `infer_types`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from corejax.base.plugin_access import plugin_access
from corejax.base.provenance import Provenance
from corejax.base.seams import Signal, Slot
from corejax.base.tables import Entry, Table
from corejax.core.avals import ShapedArray, array_method
from corejax.core.trace import set_current_trace, state
from corejax.errors import PluginMissingError
from corejax.settings.caches import clears_cache

__corejax_registers_for_caller__ = True


def _second(name: str, earlier: Entry, given: Entry) -> str:
    return (
        f"primitive {name!r} exists: it is defined by {earlier.provenance}; {given.provenance} "
        "defines a second one. Choose another name, for example one with your plugin's namespace "
        f"('{given.provenance.package}.{name}')."
    )


primitives: Table[str, Primitive] = Table("primitive", refusal=_second)

_made: weakref.WeakSet[Primitive] = weakref.WeakSet()  # also primitives that are in no table any more

# Registers the rules, by kind, that a primitive is built with.
define_rules: Slot[Callable[[Primitive, Mapping[str, Any]], None]] = Slot("registration of a primitive's rules")
# Runs the abstract-eval rule of a primitive, and memoises the types.
infer_types: Slot[Callable[[Primitive, tuple[ShapedArray, ...], dict[str, Any]], tuple[ShapedArray, ...]]] = Slot(
    "type inference"
)
# Sent with what an application raised, and the primitive.
failed = Signal("failed applications")


class Primitive:
    """An operation that interpreters give meaning to; complete when built, then frozen.

    Array data is always positional, `params` are static and hashable.

    Args:
        name: unique among primitives; it is what jaxprs print. A dotted name carries its plugin's namespace.
        multiple_results: whether `bind` gives a list of values rather than one.
        effects: names of what an application does beyond its outputs; such equations survive dce.
            A name that starts with `ordered:` is ordered.
        linear_in: positions of the operands in which the primitive is linear.
        tags: free words that transformations and tools consult ("elementwise", "linear", "higher_order"; "structural":
            it moves elements, whatever their dtype is; "exact": nothing is rounded, all rules give the same bits;
            "reduction": over axes; "cheap": it takes less time than reading what it gave;
            "placing": its abstract-eval rule says where the result is).
        decomposition: the primitive in terms of others, `f(*args, **params) -> out`; every rule is derived from it.
        impl, abstract_eval, jvp, vmap, transpose: rules, as if registered one by one.
        doc: what it computes; by default the docstring of the decomposition or impl.

    Raises:
        DuplicateRegistrationError: another owner has a primitive of that name.
        TypeError: the name is not a non-empty string, or a rule is not callable.
    """

    __slots__ = (
        "__weakref__",
        "_memo",
        "decomposition",
        "doc",
        "effects",
        "linear_in",
        "multiple_results",
        "name",
        "provenance",
        "tags",
    )

    name: str
    multiple_results: bool
    effects: frozenset[str]
    linear_in: tuple[int, ...]
    tags: frozenset[str]
    decomposition: Callable[..., Any] | None
    provenance: Provenance
    doc: str
    _memo: dict[Any, tuple[ShapedArray, ...]]

    # What JAX's primitives say of themselves: here calls and maps are ordinary primitives.
    call_primitive = map_primitive = False

    def __init__(
        self,
        name: str,
        *,
        multiple_results: bool = False,
        effects: Iterable[str] = (),
        linear_in: Iterable[int] = (),
        tags: Iterable[str] = (),
        decomposition: Callable[..., Any] | None = None,
        impl: Callable[..., Any] | None = None,
        abstract_eval: Callable[..., Any] | None = None,
        jvp: Callable[..., Any] | None = None,
        vmap: Callable[..., Any] | None = None,
        transpose: Callable[..., Any] | None = None,
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
        _made.add(self)
        rules = {"impl": impl, "abstract_eval": abstract_eval, "jvp": jvp, "vmap": vmap, "transpose": transpose}
        define_rules.get()(self, {kind: rule for kind, rule in rules.items() if rule is not None})

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the primitive: the trace on top of the stack interprets it.

        Returns:
            One value, or a list where `multiple_results`.

        Raises:
            MissingRuleError: an interpreter finds no rule for the primitive.
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
        # Interpreters recognise their own tracers only, so try again with the arrays that other objects stand for.
        values = [x if array_of is None else array_of(x) for x, array_of in zip(args, methods, strict=True)]
        return self.bind(*values, **params)

    def bind_with_trace(self, trace: Any, args: Iterable[Any], avals: Any, params: Mapping[str, Any], /) -> Any:
        """Apply the primitive as `bind` does, with a trace on top of the stack; JAX's name and arguments for it."""
        with set_current_trace(trace):
            return self.bind(*args, **params)

    def get_bind_params(self, params: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return what precedes the operands of `bind`, nothing, and its parameters; JAX's name for it."""
        return [], dict(params)

    def abstract(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> tuple[ShapedArray, ...]:
        """Return the types of the outputs, memoised on (avals, params).

        Raises:
            TypeError: a param is not hashable, or what the abstract-eval rule raises.
        """
        try:
            found = self._memo.get((avals, tuple(params.items())) if params else avals)
        except TypeError:  # a parameter that is not hashable: `infer_types` refuses it
            found = None
        return found if found is not None else infer_types.get()(self, avals, params)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"primitive {self.name!r} is frozen: set {name!r} when it is built, and give it rules in the registries"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (_by_name, (self.name, self.provenance.distribution, self.provenance.version))

    def __copy__(self) -> Primitive:
        return self

    def __deepcopy__(self, memo: Any) -> Primitive:
        return self

    def __repr__(self) -> str:
        return f"Primitive({self.name!r})"


def _positions(name: str, linear_in: Any) -> tuple[int, ...]:
    try:
        found = tuple(linear_in)
    except TypeError:
        found = (None,)
    if not all(type(i) is int and i >= 0 for i in found):
        raise TypeError(f"primitive {name!r}: linear_in is a tuple of operands' positions from 0, got {linear_in!r}")
    return found


def _by_name(name: str, distribution: str | None = None, version: str | None = None) -> Primitive:
    """Return the primitive that was pickled.

    Raises:
        PluginMissingError: no plugin has it; names the distribution that it was from.
    """
    found = find_primitive(name)
    if found is not None:
        return found
    home = "a module that is not imported here"
    if distribution is not None:
        whose = plugin_access().whose_primitive(name, distribution)
        pin = f"=={version}" if version else ""
        advice = f"pip install {distribution}{pin}" if "pip install" in whose else whose
        home = f"{distribution} {version or ''}".rstrip() + f" ({advice})"
    notes = "".join(f"; note: {problem}" for problem in plugin_access().problems("primitives"))
    raise PluginMissingError(f"there is no primitive {name!r}: what is unpickled was made with {home}{notes}")


def find_primitive(name: str) -> Primitive | None:
    """Return the primitive of a name, or None if no installed plugin has one.

    For a plugin's rules for the primitives of others. Plugins are loaded only if the name is not known yet.
    """
    if name not in primitives:
        plugin_access().load_primitives()
    return primitives.get(name)


def flat_decomposition(primitive: Primitive) -> Callable[..., list[Any]] | None:
    """Return the primitive's decomposition as a function `(*args, **params)` to a list of outputs; None without one.

    A `Derivation` runs it under the interpreter that the rule is for: it binds primitives that have rules.
    """
    body = primitive.decomposition
    if body is None:
        return None

    def flat(*args: Any, **params: Any) -> list[Any]:
        return results_of_body(primitive, body(*args, **params))

    return flat


def results_of_body(primitive: Primitive, out: Any) -> list[Any]:
    """Return the results of a decomposition as a list.

    Raises:
        TypeError: the decomposition gives a sequence for one result, or no sequence for several, or nothing.
    """
    sequence = isinstance(out, list | tuple)
    if out is None or sequence is not primitive.multiple_results:
        kind = "nothing (None)" if out is None else f"a {type(out).__name__} of {len(out)}" if sequence else "one value"
        wanted = "a sequence of results" if primitive.multiple_results else "one result"
        advice = " A primitive with several is built with multiple_results=True." if sequence else ""
        raise TypeError(
            f"the decomposition of primitive {primitive.name!r}, from {primitive.provenance}, gives {kind} where it "
            f"has to give {wanted}.{advice}"
        )
    return list(out) if sequence else [out]


@clears_cache
def _forget_all_avals() -> None:
    for primitive in list(_made):
        primitive._memo.clear()
