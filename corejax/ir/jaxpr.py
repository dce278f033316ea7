"""Jaxprs: typed, functional, first-order programs in administrative normal form, as data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from corejax.base.plugin_access import required
from corejax.base.seams import Slot
from corejax.core.avals import Operands, Params, ShapedArray, get_aval
from corejax.core.primitive import Primitive
from corejax.errors import CorejaxError
from corejax.messages.source_info import Source

# Provided by `corejax.ir`: the printer's functions by name, imported when something is first printed.
printer: Slot[Callable[[str], Callable[..., str]]] = Slot("the printer of programs")


class Shown:
    """Base of programs, with their representations as text, in Graphviz' language and as a picture.

    `to_dot` and `to_svg` raise PluginMissingError if no plugin that draws programs is installed (corejax-explain).
    """

    __slots__ = ()

    def pretty(self, **options: object) -> str:
        """Return the program as text; see `corejax.ir.printer.jaxpr_text` for the options."""
        return printer.get()("jaxpr_text")(self, **options)

    def to_dot(self) -> str:
        """Return the program as a graph in Graphviz' language, with types on edges and inner programs as clusters."""
        return required("draw_jaxpr")(self).dot  # type: ignore[no-any-return]  # a plugin's class

    def to_svg(self) -> str:
        """Return the program as a picture, an SVG document; Graphviz is not needed."""
        return required("draw_jaxpr")(self).svg  # type: ignore[no-any-return]  # a plugin's class

    def _repr_html_(self) -> str | None:
        """Return picture and text for notebooks; None, for text only, if the program is large or no plugin draws."""
        try:
            draw = required("draw_jaxpr")
        except (LookupError, CorejaxError):
            return None
        return draw(self)._repr_html_()  # type: ignore[no-any-return]  # a plugin's class

    def __repr__(self) -> str:
        return self.pretty()


class Var:
    """A variable: an identity and a type; the printer chooses its name."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var({self.aval.str_short()})"


class Literal:
    """A scalar constant in an equation.

    Attributes:
        val: the NumPy or Python scalar.
        aval: its type.
    """

    __slots__ = ("aval", "val")

    def __init__(self, val: object, aval: ShapedArray | None = None) -> None:
        self.val = val
        self.aval = get_aval(val) if aval is None else aval

    def __repr__(self) -> str:
        return f"Literal({self.val!r}, {self.aval.str_short()})"


Atom = Var | Literal
Atoms = Sequence[Atom]
Vars = Sequence[Var]
_P = TypeVar("_P")


def _with_fields(program: _P, names: Sequence[str], fields: dict[str, Any]) -> _P:
    kind: Callable[..., _P] = type(program)
    return kind(**{name: fields.pop(name, getattr(program, name)) for name in names}, **fields)


class CallParams(dict[str, Any]):
    """Parameters of a call; the program `call_jaxpr` can also be read as `jaxpr`, as in JAX's parameters of `jit`."""

    def __missing__(self, name: str) -> Any:
        if name == "jaxpr":
            return self["call_jaxpr"]
        raise KeyError(name)


class JaxprEqn:
    """One application of a primitive.

    Attributes:
        primitive: the primitive that is applied.
        invars: operands, variables or literals.
        outvars: the variables that the equation binds.
        params: static parameters.
        source_info: the user's line, as returned by `source_info.capture_source`.
    """

    __slots__ = ("invars", "outvars", "params", "primitive", "source_info")

    def __init__(
        self, primitive: Primitive, invars: Atoms, outvars: Vars, params: Params, source_info: Source | None = None
    ) -> None:
        self.primitive = primitive
        self.invars = tuple(invars)  # a tuple takes half the memory of a list
        self.outvars = tuple(outvars)
        self.params: dict[str, Any] = CallParams(params) if "call_jaxpr" in params else params
        self.source_info = source_info

    @property
    def effects(self) -> frozenset[str]:
        """The effects of the primitive and of the programs in its parameters."""
        effects: frozenset[str] = self.primitive.effects
        if "higher_order" in self.primitive.tags:
            for sub in subjaxprs(self.params):
                effects = effects | sub.effects
        return effects

    @property
    def axis_names(self) -> frozenset[Any]:
        """The named axes that the equation and the programs in its parameters use and do not bind."""
        return used_axes(self.primitive, self.params)

    def replace(self, **fields: object) -> JaxprEqn:
        """Return a copy with some fields replaced."""
        return _with_fields(self, ("primitive", "invars", "outvars", "params", "source_info"), fields)

    def __repr__(self) -> str:
        return printer.get()("eqn_text")(self)


class Jaxpr(Shown):
    """An open program: `constvars` stand for constants that are stored elsewhere, `invars` for arguments.

    Programs are never modified once they are built, so results computed from one are cached on it, in `memo`.

    Attributes:
        constvars, invars: binders.
        eqns: equations in order; each uses only binders and variables bound before.
        outvars: outputs, variables or literals.
        debug_info: the function that was traced, for messages.
        memo: a cache of results of transformations; it lives as long as the program.
    """

    __slots__ = (
        *("__weakref__", "_axis_names", "_effects", "memo"),
        *("constvars", "debug_info", "eqns", "invars", "outvars"),
    )

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        eqns: Sequence[JaxprEqn],
        outvars: Atoms,
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
        """The effects of all equations."""
        if self._effects is None:
            self._effects = frozenset().union(
                *(e.effects for e in self.eqns if e.primitive.effects or e.primitive.tags)
            )
        return self._effects

    def replace(self, **fields: object) -> Jaxpr:
        """Return a copy with some fields replaced."""
        return _with_fields(self, ("constvars", "invars", "eqns", "outvars", "debug_info"), fields)

    @property
    def axis_names(self) -> frozenset[Any]:
        """The named axes that its equations use and do not bind."""
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
    """A jaxpr with the values of its constants.

    Attributes:
        jaxpr: the program.
        consts: values of its `constvars`.
        memo: a cache of results of transformations; it lives as long as the program.
    """

    __slots__ = ("__weakref__", "consts", "jaxpr", "memo")

    def __init__(self, jaxpr: Jaxpr, consts: Operands = ()) -> None:
        if len(jaxpr.constvars) != len(consts):
            raise ValueError(f"a jaxpr with {len(jaxpr.constvars)} constvars was given {len(consts)} constants")
        self.jaxpr = jaxpr
        self.consts: list[Any] = list(consts)
        self.memo: dict[Any, Any] = {}

    def replace(self, **fields: object) -> ClosedJaxpr:
        """Return a copy with another `jaxpr` or other `consts`."""
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
        """The effects of all equations."""
        return self.jaxpr.effects


def used_axes(primitive: Any, params: Params) -> frozenset[Any]:
    """Return the named axes that an application uses: those of a collective, or of a higher-order primitive's programs.

    A collective is tagged `"collective"` and has the names in its parameter `axis_name`: a tuple of names, or one. A
    higher-order primitive tagged `"binds_axes"` binds the names in that parameter.
    """
    tags = primitive.tags
    if "collective" in tags:
        return frozenset(axis_names_of(params))
    if "higher_order" not in tags:
        return frozenset()
    used = frozenset().union(*(opened(sub).axis_names for sub in subjaxprs(params)))
    return used.difference(axis_names_of(params)) if "binds_axes" in tags else used


def axis_names_of(params: Params) -> tuple[Any, ...]:
    """Return the parameter `axis_name` as a tuple of names."""
    name = params["axis_name"]
    return name if isinstance(name, tuple) else (name,)


_PROGRAMS = (ClosedJaxpr, Jaxpr)


def subjaxprs(params: Params) -> Iterator[ClosedJaxpr | Jaxpr]:
    """Yield the programs among an equation's parameters, also those inside tuples and lists."""
    for value in params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, _PROGRAMS):
                yield item


def variables_read(eqns: Iterable[JaxprEqn], outvars: Iterable[Atom]) -> set[Any]:
    """Return the variables that equations and outputs use."""
    return {v for atoms in (*(eqn.invars for eqn in eqns), outvars) for v in atoms if type(v) is Var}


def opened(program: Jaxpr | ClosedJaxpr) -> Jaxpr:
    """Return a program without the values of its constants."""
    return program.jaxpr if isinstance(program, ClosedJaxpr) else program


def programs_of(jaxpr: Jaxpr | ClosedJaxpr) -> list[Jaxpr]:
    """Return a program and all programs in parameters of its equations at any depth, each once."""
    programs = [opened(jaxpr)]
    seen = {id(programs[0])}
    for program in programs:
        for inner in (opened(sub) for eqn in program.eqns if eqn.params for sub in subjaxprs(eqn.params)):
            if id(inner) not in seen:
                seen.add(id(inner))
                programs.append(inner)
    return programs


def close_over_consts(jaxpr: Jaxpr) -> ClosedJaxpr:
    """Convert a program `a -> b` with constvars `c` to `(c, a) -> b` without constants; inverse of `bind_consts`."""
    if not jaxpr.constvars:
        return ClosedJaxpr(jaxpr, ())
    return ClosedJaxpr(Jaxpr((), [*jaxpr.constvars, *jaxpr.invars], jaxpr.eqns, jaxpr.outvars, jaxpr.debug_info), ())


def bind_consts(closed: ClosedJaxpr, values: Operands) -> ClosedJaxpr:
    """Bind the first arguments of a program to values, which become its constants.

    Args:
        closed: a program `(c, a) -> b`.
        values: arrays of the types of `c`; they may be tracers.

    Returns:
        `a -> b`, a new program for each call. Reuse it: results of transformations are cached on it.

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


def parse_jaxpr(text: str, consts: Operands | None = None) -> Jaxpr | ClosedJaxpr:
    """Parse the text that `pretty` printed, and type-check the program; a plugin provides the parser.

    Args:
        text: one program with types, short or long.
        consts: values for its constvars, if the text has none.

    Returns:
        A `ClosedJaxpr`, or a `Jaxpr` if constvars have no values.

    Raises:
        JaxprSyntaxError: the text is not a program, or names a primitive that does not exist.
        JaxprTypeError: the program is ill-typed.
        PluginMissingError: no plugin that reads programs is installed (corejax-explain).
    """
    return required("parse_jaxpr")(text, consts)  # type: ignore[no-any-return]  # a plugin's function
