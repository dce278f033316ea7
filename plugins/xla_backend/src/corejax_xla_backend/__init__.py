"""Compilation for corejax: `jit`, and the backend `xla`.

`xla_call` is the primitive behind `jit`; `_jit` traces functions by signature, for any backend; `_programs` has a
backend compile and run their programs. `_lowering` writes StableHLO, `_xla` compiles and runs it, and `_jaxlib` is all
that knows jaxlib. Public are `hlo` (what translations mean) and `ffi` (kernels of other libraries).
"""
