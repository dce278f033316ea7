"""Products that contract axes.

dot_general, and the products said in terms of it; convolutions belong here.
"""
