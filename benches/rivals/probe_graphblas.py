"""Which SuiteSparse GraphBLAS there is, as Python calls it."""

import graphblas
import suitesparse_graphblas

print(f"version {suitesparse_graphblas.__version__}, by python-graphblas {graphblas.__version__}")
