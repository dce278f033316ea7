"""`jit`: `functions` traces and calls, by the `signatures` of arguments, without their `static_args`; `stages` are the
steps of compilation, `callables` what users hold. Nothing here knows which backend compiles.
"""
