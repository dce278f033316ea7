"""Python functions that programs call.

`pure`, `io` and `debug_callback` are primitives, `rules` has their rules, and their parameter `callback` is a
`host_function`. `debug_print` and `breakpoint` call functions of their own, a formatter and the `debugger`.
"""
