"""Python functions that programs call.

`pure`, `io` and `debug_callback` are primitives, and `rules` has their rules. Their parameter `callback` is of
`host_function`. `debug_print` and `breakpoint` call functions of their own, a formatter and the `debugger`.
"""
