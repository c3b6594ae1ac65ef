"""Which SciPy there is."""

import scipy.sparse

print(f"version {scipy.__version__}")
