"""The transformations that users call, on functions of pytrees. The work is done by `corejax.interpreters`.

flattening        a function of pytrees as a function of lists of leaves; checks of arguments and outputs
tracing           make_jaxpr, eval_shape
vmapping          vmap
autodiff          jvp, linearize, vjp, linear_transpose
linear_functions  what linearize and vjp give: linear functions, which are pytrees of their residuals
gradients         grad, value_and_grad
"""

from corejax.transforms.autodiff import jvp as jvp
from corejax.transforms.autodiff import linear_transpose as linear_transpose
from corejax.transforms.autodiff import linearize as linearize
from corejax.transforms.autodiff import vjp as vjp
from corejax.transforms.flattening import ShapeDtypeStruct as ShapeDtypeStruct
from corejax.transforms.flattening import float0 as float0
from corejax.transforms.gradients import grad as grad
from corejax.transforms.gradients import value_and_grad as value_and_grad
from corejax.transforms.tracing import eval_shape as eval_shape
from corejax.transforms.tracing import make_jaxpr as make_jaxpr
from corejax.transforms.vmapping import vmap as vmap
