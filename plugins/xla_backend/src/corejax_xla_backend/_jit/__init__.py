"""The implementation of `jit`.

The module `jit` follows a call to its result on one page, `traces` is the cache, and `stages` has the single steps. No
module of this folder depends on which backend compiles.
"""
