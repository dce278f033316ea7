"""Solutions of equations, differentiated by what they solve: `custom_linear_solve`, `custom_root`."""
