"""Frames to steps, phases, blocks and roles."""
