"""The intermediate representation: jaxprs as data, checked, run, trimmed, printed and compared.

To be read in this order:

    jaxpr      variables, literals, equations, programs; constants in and out
    check      the type checker, with the invariants of a well-typed program
    interpret  `eval_jaxpr`: a program run
    dce        what no output needs, dropped; the rules by which equations take part
    printer    programs as text; `values` is the text of literals, constants and parameters
    equality   when two programs are the same
"""

from corejax.base.stubs import import_name, names_of_stub
from corejax.base.texts import no_such_name
from corejax.ir.jaxpr import printer

_names = names_of_stub(__name__)  # most programs never are printed or compared


def __getattr__(name: str) -> object:
    if name not in _names:
        raise no_such_name(__name__, name, __dir__())
    found = globals()[name] = import_name(*_names[name])
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_names})


printer.provide(__getattr__)
