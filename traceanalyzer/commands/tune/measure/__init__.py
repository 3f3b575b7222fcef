"""Measuring candidates: checks, rounds, timing, and the process in which they run."""
