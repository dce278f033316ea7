"""Jaxprs from text: a parser of the output of `Jaxpr.pretty`.

    program   = "{" "lambda" [constvar ...] ";" [binder ...] "."
                "let" [equation ...] "in" "(" [atom, ...] ")" "}"
    constvar  = binder ["=" value]            either all constvars have values, or none
    binder    = name ":" type                 an output of an equation that is not used may be called _
    type      = ["~"] dtype "[" [int, ...] "]"         ~ is a weak type; dtypes are f32 or float32; a plugin's
                                                       refinement adds to sizes and after the shape: f32[8@x]{V:i}
    equation  = [binder ... "="] primitive ["[" name "=" param ... "]"] [atom ...]
    atom      = name | scalar ":" type

The operands of an equation end at the end of the line, at a `;` or before the next output. Other line breaks are
spaces. `#` starts a comment; `# requires DISTRIBUTION VERSION: PRIMITIVE ...` names the origin of primitives, for the
error about a missing one. Parameters are None, True, numbers, quoted strings, dtypes, types, tuples (in parentheses or
brackets), typed scalars, programs, and `Name.MEMBER` or `Name(field=value)` of classes registered by
`register_param_type`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from corejax.extend import ClosedJaxpr, Jaxpr, JaxprEqn, Primitive, ShapedArray, Var, find_primitive, primitives
from corejax.extend.messages import CorejaxError, JaxprTypeError, did_you_mean
from corejax.extend.printing import BARE_PRIMITIVE, RESERVED, plugin_access
from corejax.extend.programs import Literal, check_jaxpr
from corejax_explain.program_text.reader import NAME, SCALAR, STRING, TypeText, ValueReader

Atom = Var | Literal

_SAME_LINE = re.compile(r"[ \t]*")
_BINDER = re.compile(r"([A-Za-z_]\w*)[ \t]*:")
_UNTYPED_OUTPUTS = re.compile(r"[ \t\w]*=")
_PRIMITIVE = re.compile(BARE_PRIMITIVE)
_IN = re.compile(r"in\b")

# The first lines of `jaxpr_text(program, requires=True)`.
_REQUIRES = re.compile(r"^# requires (?P<distribution>\S+) (?P<version>\S+): (?P<primitives>.*)$", re.MULTILINE)

_UNTYPED = "; programs without types do not parse"


def parse_jaxpr(text: str, consts: Sequence[Any] | None = None) -> Jaxpr | ClosedJaxpr:
    """Parse the text of a program, and type-check the program.

    `parse_jaxpr(str(program))` prints the same text again and is the same program (`same_jaxpr`), except for the
    constants of a `ClosedJaxpr` itself, which only `program.pretty(consts=True)` prints. The user's lines are not
    parsed.

    Args:
        text: one program with types, short or long.
        consts: values for its constvars, if the text has none.

    Returns:
        A `ClosedJaxpr`, or a `Jaxpr` if constvars have no values. The same holds for programs in parameters.

    Raises:
        JaxprSyntaxError: the text is not a program, or names an unknown primitive. The message has line and column.
        JaxprTypeError: the program is ill-typed, or a constant does not have its constvar's type. The message has line
            and column.
        TypeError: `text` is not a string.
        ValueError: the number of `consts` is wrong, or the text has values itself.
    """
    if not isinstance(text, str):
        raise TypeError(f"parse_jaxpr: text must be a string, got {type(text).__name__}")
    parser = _Parser(text)
    program = parser.whole()
    if consts is not None:
        if isinstance(program, ClosedJaxpr) and program.consts:
            raise ValueError("the text gives values for its constvars, so parse_jaxpr takes no consts")
        program = ClosedJaxpr(program.jaxpr if isinstance(program, ClosedJaxpr) else program, consts)
    parser.check(program)
    return program


class _Parser(ValueReader):
    """The parser of programs and equations.

    Attributes:
        places: id of an equation -> position of its begin in the text.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.places: dict[int, int] = {}

    def whole(self) -> Jaxpr | ClosedJaxpr:
        """Parse the whole text as one program."""
        try:
            program = self.program()
        except RecursionError:
            self.fail("programs and tuples are nested too deeply here")
        self.space()
        if self.pos < len(self.text):
            self.expected("the end of the text after the program")
        return program

    def check(self, program: Jaxpr | ClosedJaxpr) -> None:
        """Type-check the program; errors have the place in the text."""
        try:
            check_jaxpr(program)
        except JaxprTypeError as error:
            place = self.place(self.places.get(id(error.eqn), 0))
            located = JaxprTypeError(f"{place}: {error}")
            located.eqn = error.eqn
            raise located from error.__cause__
        except RecursionError:
            self.fail("programs are nested too deeply", 0)
        except CorejaxError as error:  # for example, a primitive has no abstract-eval rule
            raise JaxprTypeError(f"{self.place(0)}: {type(error).__name__}: {error}") from error

    def program(self) -> Jaxpr | ClosedJaxpr:
        """Parse a program."""
        self.need("{")
        self.need("lambda")
        start = self.pos
        scope: dict[str, Var] = {}
        constvars: list[Var] = []
        consts: list[Any] = []
        while not self.at(";"):
            constvars.append(self.binder(scope, "a constvar such as `a:f32[3]`, or `;`"))
            if self.at("="):
                consts.append(self.const(constvars[-1].aval))
        if consts and len(consts) != len(constvars):
            self.fail("some constvars have values and some have none: give all of them or none", start)
        invars: list[Var] = []
        while not self.at("."):
            invars.append(self.binder(scope, "a binder such as `a:f32[3]`, or `.`"))
        self.need("let")
        eqns: list[JaxprEqn] = []
        while not self.end_of_eqns():
            eqns.append(self.eqn(scope))
        self.need("(", " and the outputs")
        outvars = self.items(")", lambda: self.output(scope), "among the outputs")
        self.need("}")
        jaxpr = Jaxpr(constvars, invars, eqns, outvars)
        return ClosedJaxpr(jaxpr, consts) if len(consts) == len(constvars) else jaxpr

    def end_of_eqns(self) -> bool:
        """Step over `in` and return True if it is next."""
        self.space()
        if self.pos == len(self.text) or self.text[self.pos] == "}":
            self.expected("an equation, or `in`")
        return self.at("in")

    def binder(self, scope: dict[str, Var], what: str) -> Var:
        """Parse a name and its type, and bind a variable; `what` is expected, for messages."""
        match = self.take(NAME, what)
        if not self.at(":"):
            self.fail(f"expected `:` and a type after {match.group()!r}, as in `a:f32[3]`{_UNTYPED}", match.end())
        return self.bind(match, self.type(), scope)

    def bind(self, match: re.Match[str], aval: ShapedArray, scope: dict[str, Var]) -> Var:
        """Make a variable for a name and add it to the scope."""
        name = match.group(1)
        if name in RESERVED:
            self.fail(f"{name!r} is a word of the language, not a variable", match.start())
        if name in scope:
            self.fail(f"variable {name!r} is bound twice", match.start())
        var = Var(aval)
        if name != "_":
            scope[name] = var
        return var

    def eqn(self, scope: dict[str, Var]) -> JaxprEqn:
        """Parse an equation, and bind its outputs."""
        outputs: list[tuple[re.Match[str], TypeText]] = []
        start = self.pos
        while match := self.match(_BINDER):
            outputs.append((match, self.type_text()))
            self.space()
        if not self.at("=") and outputs:
            self.expected("another output such as `a:f32[3]`, or `=`")
        primitive = self.primitive(untyped=not outputs)
        params = self.params()
        operands = self.operands(scope)
        avals = self.output_types(primitive, operands, params, [type_text for _, type_text in outputs])
        # Outputs are bound last, because operands and inner programs must not refer to them.
        outvars = [self.bind(match, aval, scope) for (match, _), aval in zip(outputs, avals, strict=True)]
        eqn = JaxprEqn(primitive, operands, outvars, params)
        self.places[id(eqn)] = start
        return eqn

    def output_types(
        self, primitive: Primitive, operands: list[Atom], params: dict[str, Any], texts: list[TypeText]
    ) -> list[ShapedArray]:
        """Return the types of outputs: those of the abstract-eval rule, if they print as the texts.

        The rule is needed because the text of a refinement may lack some of its content, which the rule computes from
        the operands and parameters.
        """
        if all(v.aval.refinement is None for v in operands) and not any(each.refinement for each in texts):
            return [each.aval for each in texts]
        try:
            avals: Any = primitive.abstract(tuple([v.aval for v in operands]), params)
        except Exception:  # `check` reports the error
            avals = ()
        self.refinements += [aval.refinement for aval in avals if aval.refinement is not None]
        if len(avals) == len(texts) and all(each.prints_as(aval) for each, aval in zip(texts, avals, strict=True)):
            return list(avals)
        return [self.refined(each) for each in texts]

    def primitive(self, untyped: bool) -> Primitive:
        """Parse the name of a primitive; `untyped` tells that no typed outputs precede it."""
        self.space()
        start = self.pos
        quoted = STRING.match(self.text, self.pos)
        name = self.string() if quoted else self.take(_PRIMITIVE, "a primitive").group()
        primitive = find_primitive(name)
        if primitive is None:
            if untyped and _UNTYPED_OUTPUTS.match(self.text, self.pos):
                self.fail(f"expected `:` and a type after {name!r}, as in `a:f32[3]`{_UNTYPED}", self.pos)
            self._fail_missing(name, start)
        return primitive

    def _fail_missing(self, name: str, start: int) -> NoReturn:
        """Fail for an unknown primitive; name its distribution, if the text has it, or a close name."""
        notes = "".join(f"\n  note: {problem}" for problem in plugin_access().problems("primitives"))
        home = next((m for m in _REQUIRES.finditer(self.text) if name in _names(m["primitives"])), None)
        if home is None:
            advice = plugin_access().whose_primitive(name)
            if advice.endswith("?"):
                advice = did_you_mean(name, primitives).removeprefix("; ") or advice
        else:
            version = "" if home["version"] == "?" else f"=={home['version']}"
            advice = (
                f"the program was written with {home['distribution']} {home['version']}, which has it "
                f"(pip install {home['distribution']}{version})"
            )
        self.fail(f"there is no primitive {name!r}; {advice}{notes}", start)

    def params(self) -> dict[str, Any]:
        """Parse the parameters of an equation."""
        params: dict[str, Any] = {}
        self.match(_SAME_LINE)
        if not self.text.startswith("[", self.pos):
            return params
        self.pos += 1
        while not self.at("]"):
            match = self.take(NAME, "a parameter such as `axes=(0,)`, or `]`")
            name = match.group()
            if name in params:
                self.fail(f"parameter {name!r} is given twice", match.start())
            self.need("=", f" and the value of parameter {name!r}")
            params[name] = self.value()
            self.at(",")
        return params

    def operands(self, scope: dict[str, Var]) -> list[Atom]:
        """Parse the operands of an equation."""
        operands: list[Atom] = []
        while True:
            self.match(_SAME_LINE)
            if self.pos == len(self.text) or self.text[self.pos] in "\r\n#}":
                return operands
            if self.text[self.pos] == ";":
                self.pos += 1
                return operands
            if _IN.match(self.text, self.pos):
                return operands
            if not SCALAR.match(self.text, self.pos) and _BINDER.match(self.text, self.pos):
                return operands
            operands.append(self.atom(scope))

    def atom(self, scope: dict[str, Var]) -> Atom:
        """Parse a variable or a typed literal."""
        scalar = self.match(SCALAR)
        if scalar is not None:
            if not self.text.startswith(":", self.pos):
                self.fail(f"expected `:` and the type of literal {scalar.group()}, as in `3.0:f32[]`{_UNTYPED}")
            self.pos += 1
            at = self.pos
            aval = self.type()
            if aval.shape:
                self.fail(f"a literal is a scalar, it cannot have type {aval.str_short()}", at)
            return Literal(self.converted(scalar, aval.dtype), aval)
        match = self.take(NAME, "an operand: a variable, or a literal such as `3.0:f32[]`")
        var = scope.get(match.group())
        if var is None:
            why = "it stands for unused outputs" if match.group() == "_" else "it is not bound before this place"
            self.fail(f"there is no variable {match.group()!r} to use: {why}", match.start())
        return var

    def output(self, scope: dict[str, Var]) -> Atom:
        """Parse an output of the program."""
        self.space()
        return self.atom(scope)


def _names(text: str) -> set[str]:
    """Return the primitives in a line of requirements; names that are not identifiers are in quotes."""
    quoted = [ast.literal_eval(string) for string in STRING.findall(text)]
    return {*STRING.sub(" ", text).split(), *quoted}
