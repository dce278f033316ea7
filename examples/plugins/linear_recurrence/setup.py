"""The C kernel; everything else about the distribution is in pyproject.toml.

It is optional: where there is no compiler, the distribution installs without it and NumPy does its work, slowly. It
uses the stable ABI, so that one wheel for a platform serves every Python from 3.11 on.
"""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "corejax_linear_recurrence._kernel",
            ["src/corejax_linear_recurrence/_kernel.c"],
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            py_limited_api=True,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
