"""The report: one self-contained HTML page for people to look at and pass on.

analyses -> ``gather`` (frozen dataclasses) -> ``trace_sections``, ``jobs``, ``about``, ``verdict`` (sections made of
``parts``: tables, figures, strips, sentences) -> ``page`` (HTML, by the templates)
"""
