"""What the commands that screen and measure tiles have in common in their documents."""

from __future__ import annotations

from typing import Annotated, Literal

from traceanalyzer.declare import Part, plain, told
from traceanalyzer.kernels.problem import Config, Problem

TileVerdict = Literal["best", "tie", "slower", "dropped", "unclear", "failed", "unmeasured"]

VERDICTS = (
    "tie: the same as the best as far as the samples tell; dropped: slower, and therefore measured less often; "
    "unclear: too few rounds; unmeasured: the budget ran out."
)

NO_MEASUREMENT = "no measurement: these are times of an interpreter on tiny shapes and say nothing about a GPU"


class TunedProblem(Part):
    """A product on one rank."""

    m: Annotated[int, told("Rows; in a mixture of experts tokens x top_k.")]
    n: Annotated[int, told("Columns of the result.")]
    k: Annotated[int, told("Reduced dimension.")]
    dtype: Annotated[str, told("Of the activations.")]
    experts: Annotated[int | None, told("Weight matrices.", null="a dense product")]
    top_k: Annotated[int | None, told("Experts per token.", null="a dense product")]

    @property
    def label(self) -> str:
        """The product in words."""
        return Problem.from_dict(plain(self)).label


class Tile(Part):
    """A candidate."""

    config: Annotated[dict[str, int | float | str | bool | None], told("The candidate's meta-parameters.")]

    @property
    def launch(self) -> Config:
        """The candidate as kernels take it."""
        return Config.from_dict(self.config)


class MeasuredTile(Tile):
    """What is known of a candidate."""

    verdict: Annotated[TileVerdict, told(VERDICTS)]
    rounds: Annotated[int, told("Rounds measured.")]
    median_ms: Annotated[float | None, told("Median of all samples.", null="not measured")] = None
    interval_ms: Annotated[tuple[float, float] | None, told("95 % interval of the median.", null="not measured")] = None
    ratio_to_best: Annotated[
        float | None, told("Time over the best one's, from common rounds.", null="no common rounds", unit="ratio")
    ] = None
    ratio_interval: Annotated[
        tuple[float, float] | None, told("95 % interval of the ratio.", null="no common rounds", unit="ratio")
    ] = None
    reason: Annotated[str | None, told("Why it failed.", null="it did not")] = None


class MeasuredProblem(Part):
    """A product at one number of rows."""

    problem: Annotated[TunedProblem, told("The product measured.")]
    concurrency: Annotated[int, told("Tokens in the batch.")]
    routing: Annotated[str | None, told("How rows are spread over experts.", null="a dense product")]


class Measured(Part):
    """Where tiles were measured."""

    kernel: Annotated[str, told("Name of the kernel.")]
    backend: Annotated[str, told("Whose kernel: builtin, triton_kernels or fused_moe.")]
    measured: Annotated[bool, told("False when nothing was timed on a GPU (interpreter).")]
    device: Annotated[dict[str, str | None], told("name and target of the GPU, as far as known.")]
    versions: Annotated[dict[str, str], told("Versions of the software that decides the result.")]
