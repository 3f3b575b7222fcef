"""Kernel names: scheme, kind, tile, element types, epilogue, and whether the tile can be changed.

    parse(name)       -> KernelName         parse_many(names) -> frame, one row per distinct name
    normalise(name)   -> key to group by    short_name(name, width) -> text for a table
    role_hint(kernel) -> role in a block, where the name alone settles it
    read_traits(kernel) -> what the name proves about the step: backward, optimizer, decode, prefill, sampling

Names are untrusted text: nothing here raises on one, and the work is bounded by the name's length.
"""

from traceanalyzer.names.kernel_name import Dtypes, KernelName, role_hint
from traceanalyzer.names.normalising import normalise, short_name
from traceanalyzer.names.parsing import parse, parse_many
from traceanalyzer.names.traits import Traits, read_traits

__all__ = [
    "Dtypes",
    "KernelName",
    "Traits",
    "normalise",
    "parse",
    "parse_many",
    "read_traits",
    "role_hint",
    "short_name",
]
