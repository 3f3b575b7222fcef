"""Recording a trace of a running server: start its profiler, drive it, stop it, find the files."""
