"""`jit`: the module `jit` follows a call to its result on one page, `traces` is the cache, `stages` the single steps.

Nothing here knows which backend compiles.
"""
