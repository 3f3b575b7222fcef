"""What the commands that screen and measure tiles have in common in their documents."""

from __future__ import annotations

from typing import Annotated, Literal

from traceanalyzer.declare import Part, told

VERDICTS = (
    "tie: the same as the best as far as the samples tell; dropped: slower, and therefore measured less often; "
    "unclear: too few rounds; unmeasured: the budget ran out."
)


class TunedProblem(Part):
    """A product on one rank."""

    m: Annotated[int, told("Rows; in a mixture of experts tokens x top_k.")]
    n: Annotated[int, told("Columns of the result.")]
    k: Annotated[int, told("Reduced dimension.")]
    dtype: Annotated[str, told("Of the activations.")]
    experts: Annotated[int | None, told("Weight matrices.", null="a dense product")]
    top_k: Annotated[int | None, told("Experts per token.", null="a dense product")]


class MeasuredTile(Part):
    """What is known of a candidate."""

    config: Annotated[dict[str, int | float | str | bool | None], told("The candidate's meta-parameters.")]
    verdict: Annotated[Literal["best", "tie", "slower", "dropped", "unclear", "failed", "unmeasured"], told(VERDICTS)]
    rounds: Annotated[int, told("Rounds measured.")]
    median_ms: Annotated[float | None, told("Median of all samples.", null="not measured")]
    interval_ms: Annotated[tuple[float, float] | None, told("95 % interval of the median.", null="not measured")]
    ratio_to_best: Annotated[
        float | None, told("Time over the best one's, from common rounds.", null="no common rounds", unit="ratio")
    ]
    ratio_interval: Annotated[
        tuple[float, float] | None, told("95 % interval of the ratio.", null="no common rounds", unit="ratio")
    ]
    reason: Annotated[str | None, told("Why it failed.", null="it did not")]
