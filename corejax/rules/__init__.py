"""Rule registries: one rule for each primitive (and platform), with its provenance.

Hot paths read `registry.table`, a plain dict. A miss calls `lookup`, once for each primitive, which loads plugins'
rules, derives a rule, or raises the error for a missing rule.
"""

from __future__ import annotations

from corejax.rules._kinds import abstract_eval_rules as abstract_eval_rules
from corejax.rules._kinds import collective_rules as collective_rules
from corejax.rules._kinds import impl_rules as impl_rules
from corejax.rules._kinds import jvp_rules as jvp_rules
from corejax.rules._kinds import partial_eval_jaxpr_rules as partial_eval_jaxpr_rules
from corejax.rules._kinds import partial_eval_rules as partial_eval_rules
from corejax.rules._kinds import physical_rules as physical_rules
from corejax.rules._kinds import transpose_rules as transpose_rules
from corejax.rules._kinds import vmap_rules as vmap_rules
from corejax.rules._kinds import xla_translations as xla_translations
from corejax.rules._optional import OptionalRules as OptionalRules
from corejax.rules._optional import optional_rules as optional_rules
from corejax.rules._registry import Rule as Rule
from corejax.rules._registry import RuleFn as RuleFn
from corejax.rules._registry import RuleRegistry as RuleRegistry
from corejax.rules._registry import registries as registries
from corejax.rules._registry import reporting as reporting
from corejax.rules.derivation import Derivation as Derivation
