"""Transformations from program to program, and primitives that call a program."""
