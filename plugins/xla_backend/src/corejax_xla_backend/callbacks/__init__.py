"""Python functions that programs call.

`pure`, `io` and `debug_callback` are primitives with their rules, `host_function` is what their parameter `callback`
holds. `debug_print` and `breakpoint` call functions of their own, a formatter and the `debugger`.
"""
