"""Programs to StableHLO, as text: `module` holds functions, `context` is what translation rules see, `types` how MLIR
writes types and numbers; `translations` and `host_callback` are the backend's own rules.
"""
