"""Build the optional C kernel; pyproject.toml has the rest of the configuration.

Without a compiler the distribution installs without the kernel, and NumPy computes the recurrence, more slowly. The
kernel uses the stable ABI, so that one wheel per platform works with Python 3.11 and newer.
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
