"""The command line: a command parses, calls one analysis, and hands the result to its view."""
