"""Results to people and programs: terminal tables, JSON documents, CSV, plots, the page, files for other programs.

One module a command, of the command's name: ``document`` is its JSON, ``CSV_COLUMNS`` its CSV, ``render`` its text. All
three are made of the same rows, and so is the page. ``text`` and ``console`` hold what every command's text is made of,
``step_groups`` which steps are shown as one. ``plots``, ``html`` and ``exports`` are packages of their own.
"""
