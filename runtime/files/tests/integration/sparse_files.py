"""Writes files and what is in them, or checks that files have what they should: 'sparse_files.py write FOLDER', 'sparse_files.py check FOLDER'.

Beside each file NAME is a file NAME.txt with the entries that are not zero: coordinates, and the bits of the real and the imaginary part.
"""

import pathlib
import struct
import sys

import numpy as np
import scipy.io
import scipy.sparse as sp

try:
    import sparse
except ImportError:
    sparse = None


def bits(number):
    # Conversions make zeros negative, and positive again.
    return struct.unpack("<q", struct.pack("<d", number + 0.0))[0]


def entries(array):
    if isinstance(array, np.ndarray):
        array = sp.coo_array(array)
    if sp.issparse(array):
        array = sp.coo_array(array)
        array.sum_duplicates()
        coordinates, data = array.coords, array.data
    else:
        array = sparse.COO(array)
        coordinates, data = array.coords, array.data
    lines = [(tuple(map(int, at)), complex(value)) for at, value in zip(zip(*coordinates), data) if value != 0]
    return "".join(f"{' '.join(map(str, at))} {bits(value.real)} {bits(value.imag)}\n" for at, value in sorted(lines, key=lambda line: line[0]))


def load(path):
    if path.suffix == ".mtx":
        return scipy.io.mmread(path)
    with np.load(path) as arrays:
        form, own = str(arrays["format"]), "fill_value" in arrays
    return sparse.load_npz(path) if own else sp.load_npz(path)


def write(folder):
    random = np.random.default_rng(5)
    real = sp.random_array((7, 9), density=0.3, rng=random)
    square = sp.random_array((6, 6), density=0.4, rng=random)
    whole = sp.coo_array((square * 100).astype(np.int64))
    complex_ = square + 1j * sp.random_array((6, 6), density=0.4, rng=random)
    matrices = {
        "real": real,
        "integer": whole,
        "complex": complex_,
        "symmetric": square + square.T,
        "skew-symmetric": square - square.T,
        "hermitian": complex_ + complex_.conj().T,
        "empty": sp.coo_array((3, 4)),
    }
    for name, matrix in matrices.items():
        save = lambda suffix: (folder / f"{name}{suffix}")
        matrix = sp.coo_array(matrix)
        scipy.io.mmwrite(save(".mtx"), matrix)
        scipy.io.mmwrite(save("-dense.mtx"), matrix.toarray())
        for suffix in [".mtx", "-dense.mtx"]:
            save(f"{suffix}.txt").write_text(entries(matrix))
        for form in ["csr", "csc", "coo", "bsr", "dia"]:
            for packed in [False, True]:
                path = save(f"-{form}-{packed}.npz")
                sp.save_npz(path, matrix.asformat(form), compressed=packed)
                pathlib.Path(f"{path}.txt").write_text(entries(matrix))
    scipy.io.mmwrite(folder / "pattern.mtx", square, field="pattern")
    (folder / "pattern.mtx.txt").write_text(entries(sp.coo_array(square != 0, dtype=float)))
    blocks = sp.random_array((8, 9), density=0.3, rng=random)
    sp.save_npz(folder / "blocks.npz", sp.bsr_array(blocks, blocksize=(2, 3)))
    (folder / "blocks.npz.txt").write_text(entries(blocks))
    for dtype in ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "uint64", "float32", "complex64"]:
        array = sp.csr_array(np.array([[0, 1, 2], [3, 0, 0]]).astype(dtype))
        sp.save_npz(folder / f"type-{dtype}.npz", array)
        (folder / f"type-{dtype}.npz.txt").write_text(entries(array))
    # Other programs may write elements whose first byte is the most significant.
    array = sp.csr_array(np.array([[0, 1, 2], [3, 0, 0]]))
    data, indices, indptr = array.data.astype(">f8"), array.indices.astype(">i4"), array.indptr.astype(">i8")
    np.savez(folder / "big.npz", data=data, indices=indices, indptr=indptr, shape=array.shape, format="csr")
    (folder / "big.npz.txt").write_text(entries(array))
    if sparse is not None:
        tensor = sparse.random((3, 4, 5), density=0.3, random_state=5)
        for name, stored in {
            "coo3": tensor,
            "gcxs3": sparse.GCXS.from_coo(tensor, compressed_axes=(1,)),
            "gcxs3-two": sparse.GCXS.from_coo(tensor, compressed_axes=(0, 2)),
        }.items():
            sparse.save_npz(folder / f"{name}.npz", stored)
            (folder / f"{name}.npz.txt").write_text(entries(tensor))


def check(folder):
    for path in sorted(folder.iterdir()):
        if path.suffix == ".txt":
            continue
        found, expected = entries(load(path)), pathlib.Path(f"{path}.txt").read_text()
        if found != expected:
            sys.exit(f"{path.name}: found\n{found}expected\n{expected}")


{"write": write, "check": check}[sys.argv[1]](pathlib.Path(sys.argv[2]))
