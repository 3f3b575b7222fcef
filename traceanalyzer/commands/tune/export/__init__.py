"""Rules in the form that servers read: vLLM configuration files, a patch of triton_kernels, a vLLM plugin."""
