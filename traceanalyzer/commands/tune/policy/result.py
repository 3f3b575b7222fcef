"""What `traceanalyzer tune policy` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from traceanalyzer.commands.tune.tile_config import ConfigValues, ShapeValues
from traceanalyzer.declare import Document, Part, told
from traceanalyzer.problems import TraceWarning


class PolicyRule(Part):
    """One configuration for a range of m."""

    min_m: Annotated[int, told("From this m on.")]
    max_m: Annotated[int | None, told("Up to this m.", null="no limit")]
    config: ConfigValues


class PolicyRegret(Part):
    """What the rules cost at one measured m."""

    m: Annotated[int, told("Rows.")]
    chosen_ms: Annotated[float, told("Median time of the rule's configuration.")]
    best_ms: Annotated[float, told("Median time of the fastest configuration.")]
    regret: Annotated[float, told("By which the rule is slower.", unit="share, 1 is all")]
    best_config: ConfigValues


class TunePolicyDocument(Document, tag="traceanalyzer/tune-policy/1"):
    """Rules made from a sweep; tune export reads this document."""

    command: ClassVar[str] = "tune policy"

    kernel: Annotated[str | None, told("What was tuned.", null="unknown")]
    shape: ShapeValues
    device: Annotated[dict[str, str | None], told("Name and target of the GPU, as far as known.")]
    versions: Annotated[dict[str, str], told("Versions of the software that decides the result.")]
    m_counts: Annotated[
        Literal["rows", "requests"], told("What m counts: rows of the product, or requests where no top-k is known.")
    ]
    max_regret: Annotated[
        float, told("By which a rule may be slower than the fastest configuration at each m.", unit="share, 1 is all")
    ]
    rules: Annotated[list[PolicyRule], told("Cases over m, ascending, without gaps.")]
    regret: Annotated[
        list[PolicyRegret], told("What the rules cost at each measured m; empty for rules read from a file.")
    ]
    warnings: Annotated[list[TraceWarning], told("What was left out, counted.")]
