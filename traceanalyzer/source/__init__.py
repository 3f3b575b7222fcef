"""Where a kernel comes from: the op, the module and the line of Python that launched it, also inside a graph."""
