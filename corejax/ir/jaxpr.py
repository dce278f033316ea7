"""Jaxprs: typed, functional, first-order programs in administrative normal form, as data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from corejax.base.plugin_access import required
from corejax.base.seams import Slot
from corejax.core.avals import ShapedArray, get_aval
from corejax.errors import CorejaxError
from corejax.messages.source_info import Source

# Provided by `corejax.ir`: the printer's functions by name, imported when something is first printed.
printer: Slot[Callable[[str], Callable[..., Any]]] = Slot("the printer of programs")


class Shown:
    """What programs look like: as text, in Graphviz' language, as a picture."""

    __slots__ = ()

    def pretty(self, **options: Any) -> str:
        """The program as text; see `corejax.ir.printer.jaxpr_text` for the options."""
        return printer.get()("jaxpr_text")(self, **options)  # type: ignore[no-any-return]

    def to_dot(self) -> str:
        """The program as a graph in Graphviz' language, types on the edges, programs inside equations as clusters.

        Raises:
            PluginMissingError: no plugin that draws is installed (corejax-explain).
        """
        return required("draw_jaxpr")(self).dot  # type: ignore[no-any-return]

    def to_svg(self) -> str:
        """The program as a picture, an SVG document; needs nothing but the plugin that draws.

        Raises:
            PluginMissingError: no plugin that draws is installed (corejax-explain).
        """
        return required("draw_jaxpr")(self).svg  # type: ignore[no-any-return]

    def _repr_html_(self) -> str | None:
        """Picture and text for notebooks; None, for the text alone, where the program is large or nothing draws."""
        try:
            draw = required("draw_jaxpr")
        except (LookupError, CorejaxError):
            return None
        return draw(self)._repr_html_()  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return self.pretty()


class Var:
    """A variable: an identity and a type. Names are allotted by the printer."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var({self.aval.str_short()})"


class Literal:
    """A scalar written in place.

    Attributes:
        val: the NumPy or Python scalar.
        aval: its type.
    """

    __slots__ = ("aval", "val")

    def __init__(self, val: Any, aval: ShapedArray | None = None) -> None:
        self.val = val
        self.aval = get_aval(val) if aval is None else aval

    def __repr__(self) -> str:
        return f"Literal({self.val!r}, {self.aval.str_short()})"


Atom = Var | Literal


_P = TypeVar("_P")


def _with_fields(program: _P, names: Sequence[str], fields: dict[str, Any]) -> _P:
    kind: Callable[..., _P] = type(program)
    return kind(**{name: fields.pop(name, getattr(program, name)) for name in names}, **fields)


class CallParams(dict[str, Any]):
    """Parameters of a call, whose program `call_jaxpr` can be read as `jaxpr` too, as JAX calls that of `jit`."""

    def __missing__(self, name: str) -> Any:
        if name == "jaxpr":
            return self["call_jaxpr"]
        raise KeyError(name)


class JaxprEqn:
    """One primitive application.

    Attributes:
        primitive: what is applied.
        invars: operands, variables or literals.
        outvars: the variables that it binds.
        params: static parameters.
        source_info: the user's line, as `source_info.capture_source` remembers it.
    """

    __slots__ = ("invars", "outvars", "params", "primitive", "source_info")

    def __init__(
        self,
        primitive: Any,
        invars: list[Any],
        outvars: list[Var],
        params: dict[str, Any],
        source_info: Source | None = None,
    ) -> None:
        self.primitive = primitive
        self.invars = invars
        self.outvars = outvars
        self.params = CallParams(params) if "call_jaxpr" in params else params
        self.source_info = source_info

    @property
    def effects(self) -> frozenset[str]:
        """Effects of the primitive and of the programs in its parameters."""
        effects: frozenset[str] = self.primitive.effects
        if "higher_order" in self.primitive.tags:
            for sub in subjaxprs(self.params):
                effects = effects | sub.effects
        return effects

    @property
    def axis_names(self) -> frozenset[Any]:
        """Named axes that the primitive and the programs in its parameters use, and do not bind themselves."""
        return used_axes(self.primitive, self.params)

    def replace(self, **fields: Any) -> JaxprEqn:
        """A copy with some fields replaced."""
        return _with_fields(self, ("primitive", "invars", "outvars", "params", "source_info"), fields)

    def __repr__(self) -> str:
        return printer.get()("eqn_text")(self)  # type: ignore[no-any-return]


class Jaxpr(Shown):
    """An open program: `constvars` stand for constants that are kept elsewhere, `invars` for arguments.

    Attributes:
        constvars, invars: binders.
        eqns: equations in order; each uses only binders and variables bound before.
        outvars: outputs, variables or literals.
        debug_info: which function was traced, for messages.
        memo: results of transformations of this program, kept as long as the program.
    """

    __slots__ = (
        "__weakref__",
        "_axis_names",
        "_effects",
        "constvars",
        "debug_info",
        "eqns",
        "invars",
        "memo",
        "outvars",
    )

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        eqns: Sequence[JaxprEqn],
        outvars: Sequence[Atom],
        debug_info: Any = None,
    ) -> None:
        self.constvars = list(constvars)
        self.invars = list(invars)
        self.eqns = list(eqns)
        self.outvars = list(outvars)
        self.debug_info = debug_info
        self.memo: dict[Any, Any] = {}
        self._effects: frozenset[str] | None = None
        self._axis_names: frozenset[Any] | None = None

    @property
    def effects(self) -> frozenset[str]:
        """Effects of all equations."""
        if self._effects is None:
            self._effects = frozenset().union(
                *(eqn.effects for eqn in self.eqns if eqn.primitive.effects or eqn.primitive.tags)
            )
        return self._effects

    def replace(self, **fields: Any) -> Jaxpr:
        """A copy with some fields replaced."""
        return _with_fields(self, ("constvars", "invars", "eqns", "outvars", "debug_info"), fields)

    @property
    def axis_names(self) -> frozenset[Any]:
        """Named axes that its equations use and do not bind themselves."""
        if self._axis_names is None:
            self._axis_names = frozenset().union(*(eqn.axis_names for eqn in self.eqns))
        return self._axis_names

    @property
    def in_avals(self) -> list[ShapedArray]:
        """Types of the arguments."""
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        """Types of the outputs."""
        return [v.aval for v in self.outvars]


class ClosedJaxpr(Shown):
    """A jaxpr with its constants attached.

    Attributes:
        jaxpr: the program.
        consts: values of its `constvars`.
        memo: results of transformations, kept as long as the program.
    """

    __slots__ = ("__weakref__", "consts", "jaxpr", "memo")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()) -> None:
        if len(jaxpr.constvars) != len(consts):
            raise ValueError(f"a jaxpr with {len(jaxpr.constvars)} constvars was given {len(consts)} constants")
        self.jaxpr = jaxpr
        self.consts = list(consts)
        self.memo: dict[Any, Any] = {}

    def replace(self, **fields: Any) -> ClosedJaxpr:
        """A copy with another `jaxpr` or other `consts`."""
        return _with_fields(self, ("jaxpr", "consts"), fields)

    @property
    def literals(self) -> list[Any]:
        """The constants; JAX's name for them."""
        return self.consts

    @property
    def in_avals(self) -> list[ShapedArray]:
        """Types of the arguments."""
        return self.jaxpr.in_avals

    @property
    def out_avals(self) -> list[ShapedArray]:
        """Types of the outputs."""
        return self.jaxpr.out_avals

    @property
    def eqns(self) -> list[JaxprEqn]:
        """The equations."""
        return self.jaxpr.eqns

    @property
    def effects(self) -> frozenset[str]:
        """Effects of all equations."""
        return self.jaxpr.effects


def used_axes(primitive: Any, params: dict[str, Any]) -> frozenset[Any]:
    """Named axes that an application uses: a collective its own, a higher-order primitive those of its programs.

    A collective is tagged `"collective"` and has the names in its parameter `axis_name`: a tuple of names, or one. A
    higher-order primitive tagged `"binds_axes"` binds the names that are there.
    """
    tags = primitive.tags
    if "collective" in tags:
        return frozenset(axis_names_of(params))
    if "higher_order" not in tags:
        return frozenset()
    used = frozenset().union(*(opened(sub).axis_names for sub in subjaxprs(params)))
    return used.difference(axis_names_of(params)) if "binds_axes" in tags else used


def axis_names_of(params: dict[str, Any]) -> tuple[Any, ...]:
    """The parameter `axis_name` as a tuple of names."""
    name = params["axis_name"]
    return name if isinstance(name, tuple) else (name,)


def subjaxprs(params: dict[str, Any]) -> Iterator[ClosedJaxpr | Jaxpr]:
    """The programs among an equation's parameters, also inside tuples and lists."""
    for value in params.values():
        for item in value if isinstance(value, tuple | list) else (value,):
            if isinstance(item, ClosedJaxpr | Jaxpr):
                yield item


def variables_read(eqns: Iterable[JaxprEqn], outvars: Iterable[Atom]) -> set[Any]:
    """Return the variables that equations and outputs use."""
    return {v for atoms in (*(eqn.invars for eqn in eqns), outvars) for v in atoms if type(v) is Var}


def opened(program: Jaxpr | ClosedJaxpr) -> Jaxpr:
    """Return a program without the values of its constants."""
    return program.jaxpr if isinstance(program, ClosedJaxpr) else program


def programs_of(jaxpr: Jaxpr | ClosedJaxpr) -> list[Jaxpr]:
    """A program and those among the parameters of its equations, each once, however often it is called."""
    found = [opened(jaxpr)]
    seen = {id(found[0])}
    for program in found:
        for inner in (opened(sub) for eqn in program.eqns for sub in subjaxprs(eqn.params)):
            if id(inner) not in seen:
                seen.add(id(inner))
                found.append(inner)
    return found


def close_over_consts(jaxpr: Jaxpr) -> ClosedJaxpr:
    """Constants out: `(c, a) -> b` without constants, of a program `a -> b` with constvars `c`.

    `bind_consts` undoes it.
    """
    if not jaxpr.constvars:
        return ClosedJaxpr(jaxpr, ())
    opened = Jaxpr((), [*jaxpr.constvars, *jaxpr.invars], jaxpr.eqns, jaxpr.outvars, jaxpr.debug_info)
    return ClosedJaxpr(opened, ())


def bind_consts(closed: ClosedJaxpr, values: Sequence[Any]) -> ClosedJaxpr:
    """Constants in: the program with values for its first arguments.

    Args:
        closed: a program `(c, a) -> b`.
        values: arrays of the types of `c`; they may be tracers.

    Returns:
        `a -> b`, a new program each time: keep it, for what is derived from it is kept with it.

    Raises:
        TypeError: there are more values than arguments, or a value has another shape or dtype than its argument.
    """
    jaxpr, count = closed.jaxpr, len(values)
    if count > len(jaxpr.invars):
        raise TypeError(f"bind_consts: {count} values for a program of {len(jaxpr.invars)} arguments")
    for i, (v, x) in enumerate(zip(jaxpr.invars, values, strict=False)):
        aval = get_aval(x)
        if aval.shape != v.aval.shape or aval.dtype != v.aval.dtype:
            raise TypeError(
                f"bind_consts: value {i} is {aval.str_short()}, the program's argument is {v.aval.str_short()}"
            )
    constvars = [*jaxpr.constvars, *jaxpr.invars[:count]]
    bound = Jaxpr(constvars, jaxpr.invars[count:], jaxpr.eqns, jaxpr.outvars, jaxpr.debug_info)
    return ClosedJaxpr(bound, [*closed.consts, *values])


def parse_jaxpr(text: str, consts: Sequence[Any] | None = None) -> Jaxpr | ClosedJaxpr:
    """Read a program that `pretty` printed, and type-check it; a plugin reads it.

    Args:
        text: one program with types, short or long.
        consts: values for its constvars, where the text has none.

    Returns:
        A `ClosedJaxpr`; a `Jaxpr` where there are constvars without values.

    Raises:
        JaxprSyntaxError: the text is not a program, or names a primitive that does not exist.
        JaxprTypeError: the program is ill-typed.
        PluginMissingError: no plugin that reads programs is installed (corejax-explain).
    """
    return required("parse_jaxpr")(text, consts)  # type: ignore[no-any-return]
