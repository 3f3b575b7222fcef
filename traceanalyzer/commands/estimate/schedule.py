"""Chunked prefill, simulated step by step: decodes first, parts of prompts in what is left of the token budget."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from traceanalyzer.commands.estimate.deployment import DEFAULT_BUDGET, Chunk
from traceanalyzer.commands.estimate.efficiencies import EstimateError
from traceanalyzer.commands.estimate.step_time import StepTimes

LONGEST_STRIDE = 64
"""Most rounds to simulate at once while only contexts grow; chosen, not fitted."""

MEASURED = 100
"""Requests to measure under constant load, or as many as are in flight if those are fewer; chosen, not fitted."""


@dataclass(frozen=True)
class Traffic:
    """What clients send: prompts of ``isl`` and answers of ``osl`` tokens, the next request as soon as one ends."""

    isl: int
    osl: int
    concurrency: int


@dataclass(frozen=True)
class Served:
    """What clients see. Times in ns.

    Attributes:
        ttft_ns: mean time from sending a request to its first token, waiting included.
        ttft_p99_ns: its 99 % quantile over requests.
        tpot_ns: mean time between a request's tokens after the first; None if an answer is one token.
        tpot_p99_ns: its 99 % quantile over requests.
        latency_ns: mean time of a whole request.
        requests_per_s: by Little's law, requests in flight / latency.
        tokens_per_s: tokens of answers, over all requests.
        bubble_share: share of the time that the busiest pipeline stage waits.
        rounds: rounds simulated.
    """

    ttft_ns: float
    ttft_p99_ns: float
    tpot_ns: float | None
    tpot_p99_ns: float | None
    latency_ns: float
    requests_per_s: float
    tokens_per_s: float
    bubble_share: float
    rounds: int


@dataclass
class _Request:
    sent_ns: float
    done_tokens: int = 0
    first_ns: float = 0.0
    end_ns: float = 0.0
    measured: bool = False


@dataclass
class _Server:
    """One simulation. Decodes are stored by the round in which they end, so that a round needs no loop over them."""

    times: StepTimes
    traffic: Traffic
    budget: int
    endless: bool
    now_ns: float = 0.0
    round: int = 0
    decodes: int = 0
    context: int = 0
    sent: int = 0
    busy_ns: float = 0.0
    waiting: list[deque[_Request]] = field(default_factory=list)
    ending: dict[int, list[_Request]] = field(default_factory=dict)
    done: list[_Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.waiting = [deque() for _ in range(self.ranks)]
        if math.ceil(self.traffic.concurrency / self.ranks) > self.budget:
            raise EstimateError(
                f"{self.traffic.concurrency:,} sequences do not fit into steps of {self.budget:,} tokens: "
                "raise --max-num-batched-tokens"
            )

    @property
    def ranks(self) -> int:
        return self.times.deployment.parallel.dp

    def send(self) -> None:
        measured = not self.endless or len(self.done) >= self.traffic.concurrency
        self.waiting[self.sent % self.ranks].append(_Request(self.now_ns, measured=measured))
        self.sent += 1

    def resume(self, left: int) -> None:
        """Add a request in the middle of its answer, with this many tokens to come."""
        self.ending.setdefault(left, []).append(_Request(0.0))
        self.decodes += 1
        self.context += self.traffic.isl + self.traffic.osl - left

    def advance(self) -> None:
        """Run one round, or as many as pass without a change."""
        chunks, finished = self._fill()
        rounds = 1 if chunks else min(min(self.ending) - self.round, LONGEST_STRIDE)
        decodes = max(self.decodes, 1)
        # The mean context of these rounds, the new token included.
        context = self.context / decodes + 1 + (rounds - 1) / 2
        time = self.times.round(self.decodes, context, chunks)
        self.now_ns += rounds * time.total_ns
        self.busy_ns += rounds * time.busy_ns
        self.round += rounds
        self.context += rounds * self.decodes
        ended = self.ending.pop(self.round, [])
        self.decodes -= len(ended)
        self.context -= len(ended) * (self.traffic.isl + self.traffic.osl)
        ended += self._answer(finished)
        for request in ended:
            request.end_ns = self.now_ns
            self.done.append(request)
            if self.endless:
                self.send()

    def _answer(self, finished: Sequence[_Request]) -> list[_Request]:
        """Start the answers of prompts that have been read; return requests that end with their first token."""
        for request in finished:
            request.first_ns = self.now_ns
        if self.traffic.osl == 1:
            return list(finished)
        for request in finished:
            self.ending.setdefault(self.round + self.traffic.osl - 1, []).append(request)
            self.decodes += 1
            self.context += self.traffic.isl + 1
        return []

    def _fill(self) -> tuple[tuple[Chunk, ...], list[_Request]]:
        """Fill what decodes leave of each rank's budget with prompts, first come, first served.

        Returns the chunks of the rank with the most tokens, and the requests whose prompts end.
        """
        filled = [self._fill_rank(queue) for queue in self.waiting]
        chunks = max((chunks for chunks, _ in filled), key=lambda own: sum(chunk.tokens for chunk in own))
        return tuple(chunks), [request for _, finished in filled for request in finished]

    def _fill_rank(self, queue: deque[_Request]) -> tuple[list[Chunk], list[_Request]]:
        left = self.budget - math.ceil(self.decodes / self.ranks)
        chunks, finished = [], []
        while queue and left > 0:
            request = queue[0]
            tokens = min(left, self.traffic.isl - request.done_tokens)
            past, request.done_tokens = request.done_tokens, request.done_tokens + tokens
            last = request.done_tokens == self.traffic.isl
            chunks.append(Chunk(tokens, past, last))
            left -= tokens
            if last:
                finished.append(queue.popleft())
        return chunks, finished


def steady(times: StepTimes, traffic: Traffic, budget: int = DEFAULT_BUDGET) -> Served:
    """Simulate a server under constant load whose requests end at even intervals.

    It starts with every request in the middle of its answer; requests sent after as many have ended are measured.
    ``budget`` is max_num_batched_tokens of each data-parallel rank; EstimateError if a step has fewer tokens than there
    are sequences.
    """
    server = _Server(times, traffic, budget, endless=True)
    answer = traffic.osl - 1
    for i in range(traffic.concurrency):
        if answer:
            server.resume(answer - i * answer // traffic.concurrency)
        else:
            server.send()
    wanted = min(traffic.concurrency, MEASURED)
    measured = 0
    while measured < wanted:
        before = len(server.done)
        server.advance()
        measured += sum(request.measured for request in server.done[before:])
    return _served(server)


def burst(times: StepTimes, traffic: Traffic, budget: int = DEFAULT_BUDGET) -> Served:
    """Simulate as many requests as may be in flight, all sent at once, until the last one ends.

    So does a benchmark with as many prompts as its concurrency. Arguments and errors: see ``steady``.
    """
    server = _Server(times, traffic, budget, endless=False)
    for _ in range(traffic.concurrency):
        server.send()
    while server.decodes or any(server.waiting):
        server.advance()
    return _served(server)


def _served(server: _Server) -> Served:
    osl = server.traffic.osl
    measured = [request for request in server.done if request.measured]
    extra = server.times.deployment.efficiencies.request_ns
    ttfts = sorted(request.first_ns - request.sent_ns + extra for request in measured)
    latencies = [request.end_ns - request.sent_ns + extra for request in measured]
    tpots = sorted((request.end_ns - request.first_ns) / (osl - 1) for request in measured) if osl > 1 else []
    latency = sum(latencies) / len(latencies)
    rate = server.traffic.concurrency / latency * 1e9
    return Served(
        ttft_ns=sum(ttfts) / len(ttfts),
        ttft_p99_ns=_p99(ttfts),
        tpot_ns=sum(tpots) / len(tpots) if tpots else None,
        tpot_p99_ns=_p99(tpots) if tpots else None,
        latency_ns=latency,
        requests_per_s=rate,
        tokens_per_s=rate * osl,
        bubble_share=1 - server.busy_ns / server.now_ns if server.now_ns else 0.0,
        rounds=server.round,
    )


def _p99(ordered: Sequence[float]) -> float:
    return ordered[min(math.ceil(0.99 * len(ordered)) - 1, len(ordered) - 1)]
