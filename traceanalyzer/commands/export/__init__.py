"""The trace and its tables in files for other programs."""
