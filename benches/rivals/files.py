"""Files of sparse matrices by SciPy and NumPy, in turns. Arguments: what is done (read-mtx, write-mtx or read-npz), the file, and where to write."""

import sys
import time
import warnings

import numpy as np

warnings.simplefilter("ignore", DeprecationWarning)
what, path, into = sys.argv[1:4]


def read_archive():
    with np.load(path) as arrays:
        return len({name: arrays[name] for name in arrays.files}["data"])


if what == "read-npz":
    turn = read_archive
else:
    import scipy.io

    if what == "read-mtx":
        turn = lambda: scipy.io.mmread(path).nnz
    else:
        matrix = scipy.io.mmread(path)

        def turn():
            scipy.io.mmwrite(into, matrix)
            return matrix.nnz


turn()
print("ready", flush=True)
for _ in sys.stdin:
    started = time.perf_counter()
    found = turn()
    print(f"{time.perf_counter() - started:.9f} {found}", flush=True)
