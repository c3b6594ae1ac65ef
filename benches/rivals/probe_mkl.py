"""Which MKL there is. MKL_RT may name its library."""

import ctypes
import glob
import os
import sys

import numpy  # noqa: F401

found = [os.environ.get("MKL_RT", "")] + glob.glob(sys.prefix + "/lib/libmkl_rt.so*")
library = ctypes.CDLL(next(name for name in found if name))
text = ctypes.create_string_buffer(200)
library.MKL_Get_Version_String(text, 200)
print(" ".join(text.value.decode().split()[:8]))
