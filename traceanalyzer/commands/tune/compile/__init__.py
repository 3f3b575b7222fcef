"""Compiling candidates for a GPU that need not be there, and ranking what was compiled."""
