"""The transformations that users call, on functions of pytrees. The work is done by `corejax.interpreters`.

flattening  a function of pytrees as a function of lists of leaves; checks of arguments and outputs
tracing     make_jaxpr, eval_shape
vmapping    vmap
autodiff    jvp, linearize, vjp, linear_transpose
gradients   grad, value_and_grad
"""
