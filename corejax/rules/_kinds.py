"""The kernel's rule kinds: for each, its names, the template of a rule, its flags and the order of its derivations.

`derived_by` lists the kernel's derivations of a missing rule, best first: a decomposition is preferred to a rule that
applies the impl rule to each element. Manifests of plugins are valid only if they know all of them.
"""

from __future__ import annotations

from corejax.rules._optional import OptionalRules
from corejax.rules._registry import RuleRegistry

impl_rules = RuleRegistry(
    "impl",
    "impl rule",
    """\
    @impl_rules.register({var})
    def {name}_impl(*arrays, **params):      # NumPy arrays in, NumPy arrays out
        return out""",
    flags=("device", "large", "prepared"),
    derived_by=("decomposition",),
)
abstract_eval_rules = RuleRegistry(
    "abstract_eval",
    "abstract-eval rule",
    """\
    @abstract_eval_rules.register({var})
    def {name}_abstract_eval(*avals, **params):
        return ShapedArray(shape, dtype)""",
    derived_by=("decomposition",),
)
jvp_rules = RuleRegistry(
    "jvp",
    "JVP rule",
    """\
    @jvp_rules.register({var})
    def {name}_jvp(primals, tangents, **params):
        return out, tangent_out""",
    flags=("symbolic_zeros", "nondifferentiable"),
    derived_by=("integer results", "decomposition"),
)
vmap_rules = RuleRegistry(
    "vmap",
    "vmap rule",
    """\
    @vmap_rules.register({var})
    def {name}_vmap(axis_size, vals_in, dims_in, **params):
        return out, dim_out""",
    derived_by=("decomposition", "loop"),
)
transpose_rules = RuleRegistry(
    "transpose",
    "transpose rule",
    """\
    @transpose_rules.register({var})
    def {name}_transpose(ct, *primals_in, **params):   # UndefPrimal marks the linear operands
        return [ct_or_None_for_each_operand]""",
    required=False,
    flags=("symbolic_zeros",),
    derived_by=("decomposition",),
)
partial_eval_rules = RuleRegistry(
    "partial_eval",
    "partial-eval rule",
    """\
    @partial_eval_rules.register({var})
    def {name}_partial_eval(trace, args, **params):
        return outs""",
    required=False,
)
partial_eval_jaxpr_rules = RuleRegistry(
    "partial_eval_jaxpr",
    "partial-eval rule for equations",
    """\
    @partial_eval_jaxpr_rules.register({var})
    def {name}_partial_eval_eqn(unknowns_in, eqn):
        return eqn_known, eqn_unknown, unknowns_out, residuals""",
    required=False,
)
xla_translations = RuleRegistry(
    "xla_translation",
    "XLA translation rule",
    """\
    @xla_translations.register({var})
    def {name}_translation(ctx, in_avals, in_vals, **params):
        return out_value""",
)

# (axis_name, axis_size, vals_in, dims_in, **params) -> (out, dim_out), like a vmap rule: for primitives tagged
# "collective" if the mapped axis is the one that they name. For other axes, their vmap rules apply.
collective_rules = OptionalRules("collective")

# (in_avals, *numbers, **params) -> out: operands and results of extended dtypes are represented by their numbers, the
# others by themselves. For primitives that compute with such elements; see `physical_program`.
physical_rules = OptionalRules("physical")
