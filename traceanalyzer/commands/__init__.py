"""Analyses: a Trace in, a frame or a frozen dataclass out."""
