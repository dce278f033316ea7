"""Conversion of values to another dtype or representation, and identities that transformations treat specially.

Modules: convert (convert_element_type, stop_gradient), bitcast, precision (reduce_precision), identity (copy, stage).
"""
