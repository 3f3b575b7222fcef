"""``traceanalyzer source``: the op, the module and the line that launched each kernel."""
