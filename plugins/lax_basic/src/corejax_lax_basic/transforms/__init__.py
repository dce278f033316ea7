"""Transformations that need array operations: Jacobians, and evaluation while a function is traced."""
