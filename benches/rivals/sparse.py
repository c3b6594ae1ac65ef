"""Computations with sparse matrices by SciPy, MKL or GraphBLAS, in turns. Arguments: scipy, mkl or graphblas, cores, the kernel, and the folder of the data."""

import ctypes
import glob
import os
import sys
import time

import numpy as np

library, cores, kernel, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]


def parts(name):
    read = lambda what, kind: np.fromfile(f"{folder}/{name}.{what}", dtype=kind)
    return read("pos", np.int32), read("crd", np.int32), read("values", np.float64)


matrices = {name: parts(name) for name in ("A", "B", "C") if os.path.exists(f"{folder}/{name}.pos")}
rows = len(matrices["A"][0]) - 1
columns = int(kernel[4:]) if kernel.startswith("spmm") else 1
vector = np.arange(rows * columns, dtype=np.int64) % 5 + 1.0
dense = vector.reshape(rows, columns)


def weighed(pos, crd, values):
    at = np.repeat(np.arange(len(pos) - 1, dtype=np.int64), np.diff(pos))
    return int((values * ((at + 3 * crd.astype(np.int64)) % 5 + 1)).sum())


def weighed_dense(values):
    at = np.arange(rows, dtype=np.int64)[:, None] + 3 * np.arange(columns, dtype=np.int64)[None, :]
    return int((values.reshape(rows, columns) * (at % 5 + 1)).sum())


def by_scipy():
    import scipy.sparse as sp

    csr = {name: sp.csr_matrix((values, crd, pos), shape=(rows, rows)) for name, (pos, crd, values) in matrices.items()}
    a = csr["A"]
    if kernel == "spmv":
        return lambda: a @ vector, weighed_dense
    if kernel.startswith("spmm"):
        return lambda: a @ dense, weighed_dense
    of = lambda found: weighed(found.indptr, found.indices, found.data)
    if kernel == "spadd3":
        return lambda: a + csr["B"] + csr["C"], of
    return lambda: a @ a, of


def by_mkl():
    found = [os.environ.get("MKL_RT", "")] + glob.glob(sys.prefix + "/lib/libmkl_rt.so*")
    mkl = ctypes.CDLL(next(name for name in found if name))
    mkl.MKL_Set_Num_Threads(cores)

    class Description(ctypes.Structure):
        _fields_ = [("type", ctypes.c_int), ("mode", ctypes.c_int), ("diagonal", ctypes.c_int)]

    general = Description(20, 0, 0)
    pointer = lambda array: array.ctypes.data_as(ctypes.c_void_p)

    def check(status):
        if status != 0:
            raise RuntimeError(f"MKL gives {status}")

    def handle(name):
        pos, crd, values = matrices[name]
        made = ctypes.c_void_p()
        first = ctypes.c_void_p(pos.ctypes.data)
        last = ctypes.c_void_p(pos.ctypes.data + 4)
        check(mkl.mkl_sparse_d_create_csr(ctypes.byref(made), 0, rows, rows, first, last, pointer(crd), pointer(values)))
        return made

    a = handle("A")
    result = np.empty(rows * columns)
    one, zero = ctypes.c_double(1.0), ctypes.c_double(0.0)
    if kernel == "spmv":
        check(mkl.mkl_sparse_set_mv_hint(a, 10, general, 1000))
        check(mkl.mkl_sparse_optimize(a))

        def multiply():
            check(mkl.mkl_sparse_d_mv(10, one, a, general, pointer(vector), zero, pointer(result)))
            return result

        return multiply, weighed_dense
    if kernel.startswith("spmm"):
        check(mkl.mkl_sparse_set_mm_hint(a, 10, general, 101, columns, 1000))
        check(mkl.mkl_sparse_optimize(a))

        def multiply():
            into = (pointer(dense), columns, columns, zero, pointer(result), columns)
            check(mkl.mkl_sparse_d_mm(10, one, a, general, 101, *into))
            return result

        return multiply, weighed_dense

    def exported(made):
        base, nrows, ncolumns = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        first, last, crd, values = (ctypes.c_void_p() for _ in range(4))
        into = [ctypes.byref(of) for of in (base, nrows, ncolumns, first, last, crd, values)]
        check(mkl.mkl_sparse_d_export_csr(made, *into))
        array = lambda address, kind, count: np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(kind)), (count,))
        pos = np.append(array(first, ctypes.c_int, rows), array(last, ctypes.c_int, rows)[-1])
        count = int(pos[-1])
        return pos, array(crd, ctypes.c_int, count), array(values, ctypes.c_double, count)

    made = []

    def fresh():
        while made:
            mkl.mkl_sparse_destroy(made.pop())
        made.append(ctypes.c_void_p())
        return made[0]

    if kernel == "spadd3":
        b, c = handle("B"), handle("C")

        def add():
            sum_of_two, whole = ctypes.c_void_p(), fresh()
            check(mkl.mkl_sparse_d_add(10, a, one, b, ctypes.byref(sum_of_two)))
            check(mkl.mkl_sparse_d_add(10, sum_of_two, one, c, ctypes.byref(whole)))
            mkl.mkl_sparse_destroy(sum_of_two)
            return whole

        return add, lambda found: weighed(*exported(found))

    def square():
        whole = fresh()
        check(mkl.mkl_sparse_spmm(10, a, a, ctypes.byref(whole)))
        # As this project gives it: with columns in order.
        check(mkl.mkl_sparse_order(whole))
        return whole

    return square, lambda found: weighed(*exported(found))


def by_graphblas():
    import graphblas as gb

    gb.ss.config["nthreads"] = cores
    csr = lambda parts: gb.Matrix.ss.import_csr(
        nrows=rows, ncols=rows, indptr=parts[0].astype(np.uint64), col_indices=parts[1].astype(np.uint64), values=parts[2], sorted_cols=True
    )
    a = csr(matrices["A"])
    if kernel == "triangles":
        # As LAGraph counts them, with dot products (Davis, ACM TOMS 2019).
        def count():
            common = gb.Matrix(gb.dtypes.INT64, rows, rows)
            common(a.S) << gb.semiring.plus_pair(a @ a.T)
            return int(common.reduce_scalar().new().value or 0)

        return count, lambda found: found

    def square():
        made = gb.semiring.plus_times(a @ a).new()
        made.wait("materialize")
        return made

    def of(made):
        found = made.ss.export("csr", sort=True)
        return weighed(*(found[part].astype(np.int64) for part in ("indptr", "col_indices")), found["values"])

    return square, of


compute, weigh = {"scipy": by_scipy, "mkl": by_mkl, "graphblas": by_graphblas}[library]()
compute()
print("ready", flush=True)
for _ in sys.stdin:
    start = time.perf_counter()
    found = compute()
    seconds = time.perf_counter() - start
    print(f"{seconds:.9f} {weigh(found)}", flush=True)
