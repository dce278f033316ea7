"""The backend `xla`.

`backend` is the class that the plugin provides, `executable` lowers, compiles and runs programs, and `dispatch` is the
fast path of calls.
"""
