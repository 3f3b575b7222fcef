"""Tuning: sweeps of kernel configurations, rules made from them, and files that servers read."""
