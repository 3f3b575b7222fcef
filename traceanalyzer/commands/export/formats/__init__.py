"""Files for other programs: formats for tables, a module each, and the trace with tracks for a timeline viewer.

``traceanalyzer export`` offers every format that declares itself by its first line.
"""
