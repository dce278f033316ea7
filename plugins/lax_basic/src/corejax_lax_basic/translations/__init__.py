"""XLA translation rules, in modules with the names of the primitives' modules; imported on the first compilation."""

from __future__ import annotations

from importlib import import_module

from corejax.extend import Primitive

_MODULES = {
    "conversion": "bitcast convert",
    "convolution": "conv",
    "creation": "empty iota",
    "elementwise": "_family arithmetic bits comparison complex_numbers powers rounding select trigonometry unary",
    "indexing": "dynamic_slicing from_front gather scatter",
    "linear": "dot",
    "reductions": "cumulative general reduce",
    "shape": "broadcasting joining rearranging slicing tiling",
    "sorting": "sort top_k total_order",
    "special": "bessel error_functions gamma incomplete",
    "values": "pack",
    "windows": "general reduce_window select_and_scatter selection",
}
# Modules that translate primitives of modules without a namesake here.
_OTHERS = {
    "conversion.identity": "conversion.convert",
    "conversion.precision": "conversion.bitcast",
    "elementwise.logical": "elementwise._family",
    "indexing.scatter_apply": "indexing.scatter",
    "indexing.scatter_combining": "indexing.scatter",
}


def load(primitive: Primitive | None) -> None:
    """Register the rules of a primitive's module; all rules if the primitive is None or its module has no namesake.

    Modules of tables translate the rows of the modules that are imported.
    """
    every = [f"{package}.{module}" for package, names in _MODULES.items() for module in names.split()]
    home = "" if primitive is None else primitive.provenance.module.removeprefix("corejax_lax_basic.")
    home = _OTHERS.get(home, home)
    for module in [home] if home in every else every:
        import_module(f"{__name__}.{module}")
    from corejax_lax_basic.elementwise._family import STABLEHLO
    from corejax_lax_basic.translations.elementwise._family import translate_rows

    translate_rows(STABLEHLO if primitive is None else [primitive])
