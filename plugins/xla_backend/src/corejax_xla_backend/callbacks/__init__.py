"""Callbacks: Python functions that programs call.

`pure`, `io` and `debug_callback` define the primitives, and `rules` their rules. The parameter `callback` of these
primitives is a `HostFunction` (`host_function`). `debug_print` and `breakpoint` bind the primitives of
`debug_callback` with callbacks of their own: a formatter, and the prompt in `debugger`.
"""
