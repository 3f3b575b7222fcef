"""Triton kernels to tune: for each a kernel, a torch reference and its search space."""
