"""Lowering of programs to StableHLO text.

`module` collects functions, `context` is the interface for translation rules, `types` writes types and numbers as MLIR
does, and `translations` and `host_callback` derive translation rules.
"""
