"""Writes the generated pages of docs/reference: ``make reference``, or ``python -m docs.generate`` in the root folder.

It stands beside what it writes and is no part of the package that users install.
"""
