"""Compilation for corejax: `jit`, and the backend `xla`.

`xla_call` is the primitive behind `jit`; `_jit` traces functions by signature, for any backend; `_programs` compiles
and runs their programs by a backend. `_lowering` writes StableHLO, `_xla` compiles and runs it, and only `_jaxlib`
imports jaxlib. `hlo` (for authors of translation rules) and `ffi` (kernels of other libraries) are public.
"""
