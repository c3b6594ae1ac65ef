"""Products of tensors by NumPy's einsum, in turns. Arguments: cores, letters of the result and of each factor, separated by commas, extents of i, j and so on."""

import os
import sys

cores, letters, extents = sys.argv[1], sys.argv[2].split(","), [int(extent) for extent in sys.argv[3:]]
os.environ["OPENBLAS_NUM_THREADS"] = cores

import time

import numpy

extent_of = dict(zip("ijklmn", extents))
PERIODS = [2, 3, 2, 3]


def outer(of):
    """The product of a vector for each dimension."""
    whole = numpy.ones(())
    for vector in of:
        whole = numpy.multiply.outer(whole, vector)
    return numpy.ascontiguousarray(whole)


def tensor(access):
    return outer([1.0 + numpy.arange(extent_of[letter]) % PERIODS[at] for at, letter in enumerate(access)])


result, *factors = letters
weights = outer([1.0 + numpy.arange(extent_of[letter]) % 5 for letter in result])
operands = [tensor(access) for access in factors]
expression = ",".join(factors) + "->" + result


def compute():
    start = time.perf_counter()
    found = numpy.einsum(expression, *operands, optimize=True)
    return time.perf_counter() - start, found


compute()
print("ready", flush=True)
for _ in sys.stdin:
    seconds, found = compute()
    print(f"{seconds:.9f} {int((found * weights).sum())}", flush=True)
