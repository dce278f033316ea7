"""The transformations that users call, on functions of pytrees. They flatten pytrees and call `corejax.interpreters`.

flattening  adapts functions of pytrees to lists of leaves; checks arguments and outputs
tracing     make_jaxpr, eval_shape
vmapping    vmap
autodiff    jvp, linearize, vjp, linear_transpose
gradients   grad, value_and_grad
"""
