"""What `traceanalyzer tune replay` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from traceanalyzer.declare import Document, told

StrategyName = Literal["guided", "random"]


class TuneReplayDocument(Document, tag="traceanalyzer/tune-replay/1"):
    """How near a search comes to the best of a recorded sweep."""

    command: ClassVar[str] = "tune replay"

    strategy: Annotated[StrategyName, told("What chose configurations.")]
    space: Annotated[int, told("Configurations recorded, of all problems.")]
    problems: Annotated[int, told("Spaces searched, one per problem and m.")]
    failed_configurations: Annotated[int, told("Recorded configurations that could not run.")]
    evaluations: Annotated[int, told("Most made with one seed, over all problems.")]
    samples_per_evaluation: Annotated[int, told("Recorded samples that an evaluation draws.")]
    seeds: Annotated[int, told("Searches of each problem.")]
    median_regret: Annotated[float | None, told("Of the searches.", null="nothing tried ran", unit="share, 1 is all")]
    p90_regret: Annotated[
        float | None, told("90 % quantile of the searches.", null="nothing tried ran", unit="share, 1 is all")
    ]
    random_median_regret: Annotated[
        float | None,
        told("Of random search with as many evaluations.", null="nothing tried ran", unit="share, 1 is all"),
    ]
    regrets: Annotated[
        list[float | None],
        told("Per search: by how much its configuration is slower than the fastest; null where nothing tried ran."),
    ]
