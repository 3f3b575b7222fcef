"""File formats for tables, a module each; ``traceanalyzer export`` offers every one that declares itself."""
