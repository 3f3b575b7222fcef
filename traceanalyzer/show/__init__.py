"""Showing results to people and programs: terminal tables, CSV, JSON Schemas, plots.

What every command's ``view`` and ``plot`` are made of: ``part_table`` makes terminal tables of declared parts,
``frame_table`` of any frame, ``csv_text`` writes CSV, ``schema`` JSON Schemas; ``step_groups`` says which steps are
shown as one. ``plots`` holds what Matplotlib plots share.
"""
