"""Which NumPy there is, and by which BLAS it multiplies."""

import os

import numpy

numpy.ones((2, 2)) @ numpy.ones((2, 2))
with open("/proc/self/maps") as maps:
    libraries = {line.split()[-1] for line in maps if "blas" in line}
openblas = [library for library in libraries if "openblas" in os.path.realpath(library)]
blas = "OpenBLAS" if openblas else "a BLAS that is not OpenBLAS"
print(f"version {numpy.__version__}, with {blas}")
