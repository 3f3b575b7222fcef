"""The block finder: where each transformer block of a step starts and ends, from kernel names alone.

Every block mixes tokens once, so the mixing kernels (`anchors`) count the blocks. A border lies in the gap
between two anchors: after the feed-forward of the one and before the projections of the other, at a norm. Three
estimates vote on which norm it is: the first after the feed-forward's end, the usual number of norms before the
next anchor, the usual number after the last one:

    n qkv M o n up act down | n qkv M o n up act down | n lm_head
          ^anchor    F      ^     ^anchor
                            the first n after F; one n back from the next anchor; two n on from the last one

How many are usual is read off the step itself; the first
block (nothing of another block before it) and the last (one final norm after it) decide between readings.
The cost is linear in the step's kernels.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

from traceanalyzer.segment.anchors import Anchor, find_anchors
from traceanalyzer.segment.block_borders import StepLayout, head_of_norm, tail_end
from traceanalyzer.segment.confidence import rate
from traceanalyzer.segment.cut import Cut, cut_from_spans
from traceanalyzer.segment.post_norm import closing_norms
from traceanalyzer.segment.repetition import find_repetition
from traceanalyzer.segment.tokens import IntArray, KernelVocabulary

_MOST_DRAFTS = 16
"""Draft passes after one pass of the model, at most. Chosen, not fitted: deployments draft fewer tokens."""
_POST_NORM_COST = 0.25
"""Cost, in norms, of each post-norm that a reading assumes (two at most): breaks ties. Chosen, not fitted."""
_NO_FINAL_NORM_COST = 0.4
"""Cost, in norms, of a step without a final norm (a pipeline stage): less than one wrong norm. Chosen, not fitted."""
_UNCHECKED_COST = 0.5
"""Cost of a plan that nothing checks: a single block, or passes of one block. Chosen, not fitted."""


def find_blocks(tokens: IntArray, vocabulary: KernelVocabulary, known: frozenset[int] = frozenset()) -> Cut:
    """Cut a step's kernels, in order of start, into blocks.

    Args:
        tokens: token of each event of the step.
        vocabulary: what the tokens are.
        known: see `find_anchors`.
    """
    anchors = find_anchors(tokens, vocabulary, known)
    if not anchors:
        return find_repetition(tokens, vocabulary)
    layout = StepLayout.of(tokens, vocabulary)
    plan = _plan(layout, anchors)
    if plan is None:
        return find_repetition(tokens, vocabulary)
    starts, ends, agreement = _borders(layout, anchors, plan)
    if not _plausible(layout, starts, ends):
        return find_repetition(tokens, vocabulary)
    cut = cut_from_spans(len(tokens), starts, ends, 1.0)
    confidence = rate(tokens, starts, ends, agreement, plan.cost)
    return closing_norms(tokens, vocabulary, Cut(cut.block_of, cut.count, confidence))


def _plausible(layout: StepLayout, starts: list[int], ends: list[int]) -> bool:
    """Return whether most of the blocks multiply matrices: what does not is not a transformer block."""
    good = sum(
        bisect_left(layout.gemms, start) < bisect_left(layout.gemms, end)
        for start, end in zip(starts, ends, strict=True)
    )
    return good * 2 > len(starts)


@dataclass(frozen=True)
class _Plan:
    """How many norms (or, in a step that shows none, projections) stand where, by the anchor's token.

    Attributes:
        marks: positions that borders lie at: the norms, or the matrix products where norms do not help.
        skip: marks at a block's end that come after its feed-forward (post-norms).
        before: usual number of marks of a block before its anchor.
        after: usual number of marks of a block after its anchor.
        cost: how far the first and the last block are from what the others say.
    """

    marks: list[int]
    skip: int
    before: dict[int, int]
    after: dict[int, int]
    usual_before: int
    usual_after: int
    cost: float


def _plan(layout: StepLayout, anchors: list[Anchor]) -> _Plan | None:
    if layout.norms and bisect_left(layout.norms, anchors[0].start) > 0:
        plan = _plan_for(layout, anchors, layout.norms, feed_forward=True)
        if plan.usual_before > 0:
            return plan
    products = layout.gemms
    if not products or bisect_left(products, anchors[0].start) == 0:
        return _plan_for(layout, anchors, layout.norms, feed_forward=True) if layout.norms else None
    return _plan_for(layout, anchors, products, feed_forward=False)


def _plan_for(layout: StepLayout, anchors: list[Anchor], marks: list[int], *, feed_forward: bool) -> _Plan:
    """Read off how many marks stand before and after an anchor, the way that fits both ends of the step best.

    With M an anchor, F the end of its feed-forward and n a norm, a step of three blocks reads

        n M n F  n M n F  n M n F  n
        1      last gap: 2 norms, 1 of them after F      last: own norm and the final one

    Every gap has one norm after its F (``reach``). With post-norms (``n M n n F n``) it has two, and either could open
    the next block; ``skip`` is how many of them still belong to the block before. The first block decides: it has only
    its own norms ahead.
    """
    first = bisect_left(marks, anchors[0].start)
    last = len(marks) - bisect_right(marks, anchors[-1].end)
    within = _within_passes(layout, anchors)
    if not within and len(anchors) > 1:
        return _plan_for_passes(layout, anchors, marks, feed_forward=feed_forward)
    if not within:
        return _plan_for_one(layout, anchors[0], marks, first, last, feed_forward=feed_forward)
    gaps = [_gap(layout, one, two, marks, feed_forward=feed_forward) for one, two in within]
    usual = _usual(gaps, anchors[0].token, anchors[-1].token)
    to_head = bool(layout.samples) and layout.samples[-1] > anchors[-1].end
    # Each reading of the post-norms is tried on both ends; fewer post-norms are preferred where they fit as well.
    costs = {
        skip: abs(first - (usual.reach - skip))
        + _short_of(last, usual.inside_last + skip, to_head)
        + _POST_NORM_COST * min(skip, 2)
        for skip in range(usual.reach)
    }
    skip = min(costs, key=lambda s: (costs[s], s)) if costs else 0
    return _planned(marks, usual, skip, first, costs.get(skip, 1.0) - _POST_NORM_COST * min(skip, 2))


@dataclass(frozen=True)
class _Gap:
    """The marks between two anchors.

    Attributes:
        before, after: tokens of the anchors.
        reach: marks from the feed-forward's end to the next anchor; -1 where no feed-forward shows.
        inside: marks in all.
    """

    before: int
    after: int
    reach: int
    inside: int


def _gap(layout: StepLayout, one: Anchor, two: Anchor, marks: list[int], *, feed_forward: bool) -> _Gap:
    end = layout.feed_forward_end(one.end, two.start) if feed_forward else None
    high = bisect_left(marks, two.start)
    reach = high - bisect_right(marks, end) if end is not None else -1
    return _Gap(one.token, two.token, reach, high - bisect_right(marks, one.end))


@dataclass(frozen=True)
class _Usual:
    """What most gaps say.

    Attributes:
        gaps: the gaps; where no feed-forward shows, ``reach`` holds all of their marks.
        by_feed_forward: whether the feed-forward's end parts the marks.
        reach: marks from the feed-forward's end to an anchor like the first.
        inside_last: marks from an anchor like the last to its feed-forward's end.
    """

    gaps: list[_Gap]
    by_feed_forward: bool
    reach: int
    inside_last: int


def _usual(gaps: list[_Gap], first_token: int, last_token: int) -> _Usual:
    # Models with several kinds of layer have other counts for each: the ends are compared with their own kind.
    to_first = [gap for gap in gaps if gap.after == first_token] or gaps
    from_last = [gap for gap in gaps if gap.before == last_token] or gaps
    with_reach = _reaching(to_first)
    if len(with_reach) * 2 > len(to_first):
        seen = _reaching(from_last) or _reaching(gaps)
        inside_last = _mode(gap.inside - gap.reach for gap in seen)
        return _Usual(gaps, True, _mode(gap.reach for gap in with_reach), inside_last)
    # Without a feed-forward to part them, all marks of a gap may open the next block.
    reach = _mode(gap.inside for gap in to_first)
    inside_last = _mode(gap.inside for gap in from_last) - reach
    return _Usual([replace(gap, reach=gap.inside) for gap in gaps], False, reach, inside_last)


def _reaching(gaps: list[_Gap]) -> list[_Gap]:
    """The gaps in which marks follow the feed-forward's end."""
    return [gap for gap in gaps if gap.reach > 0]


def _planned(marks: list[int], usual: _Usual, skip: int, first: int, cost: float) -> _Plan:
    """Count the marks before and after each kind of anchor, now that it is known whose the post-norms are."""
    before: dict[int, list[int]] = defaultdict(list)
    after: dict[int, list[int]] = defaultdict(list)
    for gap in usual.gaps:
        if gap.reach > 0:
            before[gap.after].append(gap.reach - skip)
            after[gap.before].append(gap.inside - gap.reach + skip)
    return _Plan(
        marks,
        skip if usual.by_feed_forward else 0,
        {token: max(_mode(counts), 0) for token, counts in before.items()},
        {token: max(_mode(counts), 0) for token, counts in after.items()},
        _mode(n for counts in before.values() for n in counts) if before else first,
        _mode(n for counts in after.values() for n in counts),
        cost,
    )


def _within_passes(layout: StepLayout, anchors: list[Anchor]) -> list[tuple[Anchor, Anchor]]:
    """Neighbours that no pass ends between. What marks so many gaps that no draft model explains them ends no pass."""
    pairs = list(pairwise(anchors))
    within = [pair for pair in pairs if not layout.passes_between(pair[0].end, pair[1].start)]
    return pairs if len(pairs) - len(within) > max(_MOST_DRAFTS, len(within)) else within


def _short_of(last: int, own: int, to_head: bool) -> float:
    """How far the marks after the last anchor are from the block's own and a final one; a stage may lack that.

    Args:
        last, own: the marks that there are, and those of the block.
        to_head: whether the step goes on to sampling: logits are computed from a normed output.
    """
    missing = abs(last - own - 1)
    return missing if to_head else min(missing, _NO_FINAL_NORM_COST + abs(last - own))


def _plan_for_one(
    layout: StepLayout, anchor: Anchor, marks: list[int], first: int, last: int, *, feed_forward: bool
) -> _Plan:
    """The same for a step with a single block: the final norm is the last one between feed-forward and logits."""
    after, skip = max(last - 1, 0), 0
    if feed_forward and layout.open_feed_forward(anchor.end) is not None:
        # The last norm opens the feed-forward: a layer alone, without a final norm.
        after = last
    elif feed_forward:
        end = layout.feed_forward_end(anchor.end, layout.length)
        if end is not None:
            product = bisect_right(layout.gemms, end)
            logits = layout.gemms[product] if product < len(layout.gemms) else layout.length
            skip = max(bisect_left(marks, logits) - bisect_right(marks, end) - 1, 0)
            after = bisect_right(marks, end) - bisect_right(marks, anchor.end) + skip
    return _Plan(marks, skip, {anchor.token: first}, {anchor.token: after}, first, after, _UNCHECKED_COST)


def _plan_for_passes(layout: StepLayout, anchors: list[Anchor], marks: list[int], *, feed_forward: bool) -> _Plan:
    """The same where every block is a pass of its own: its marks from the pass's start, and to its end but the last."""
    before: dict[int, list[int]] = defaultdict(list)
    after: dict[int, list[int]] = defaultdict(list)
    lows = [0, *(layout.last_turn(one.end, two.start) for one, two in pairwise(anchors))]
    highs = [*(layout.first_turn(one.end, two.start) for one, two in pairwise(anchors)), layout.length]
    for anchor, low, high in zip(anchors, lows, highs, strict=True):
        before[anchor.token].append(bisect_left(marks, anchor.start) - bisect_left(marks, low))
        inside = bisect_left(marks, high) - bisect_right(marks, anchor.end)
        end = layout.feed_forward_end(anchor.end, high) if feed_forward else None
        final = 1 if end is None else min(bisect_left(marks, high) - bisect_right(marks, end), 1)
        after[anchor.token].append(max(inside - final, 0))
    return _Plan(
        marks,
        0,
        {token: _mode(counts) for token, counts in before.items()},
        {token: _mode(counts) for token, counts in after.items()},
        _mode(n for counts in before.values() for n in counts),
        _mode(n for counts in after.values() for n in counts),
        _UNCHECKED_COST,
    )


def _mode(values: Iterable[int]) -> int:
    counts = Counter(values)
    return max(counts, key=lambda value: (counts[value], -value)) if counts else 0


def _borders(layout: StepLayout, anchors: list[Anchor], plan: _Plan) -> tuple[list[int], list[int], float]:
    """Place the borders; the last figure is the share of gaps in which all estimates agree."""
    marks = plan.marks
    by_norm = marks is layout.norms
    length = layout.length
    # The first block has no gap before it: its start is counted back from its anchor alone.
    first_before = plan.before.get(anchors[0].token, plan.usual_before)
    position = bisect_left(marks, anchors[0].start)
    first_mark = marks[max(position - first_before, 0)] if position else anchors[0].start
    starts_at = [first_mark]
    ends_at: list[int | None] = []
    agreed = 0
    for one, two in pairwise(anchors):
        end, start, agree = _vote(layout, one, two, plan)
        agreed += agree
        ends_at.append(end)
        starts_at.append(start)
    # A norm that is not fused starts some kernels before its heart. A block that ends at the mark that starts the next
    # ends with that norm's first kernel; one that ends earlier (a pass ended) ends before its own final norm.
    starts = layout.block_starts(starts_at, by_norm)
    heads = dict(zip(starts_at, starts, strict=True))
    ends: list[int] = []
    for number, end in enumerate(ends_at):
        nearest = starts[number + 1]
        if end is None or end == starts_at[number + 1]:
            nearest = _end_of_tower(layout, anchors, number, starts, ends) or nearest
        else:
            nearest = heads.get(end) or head_of_norm(layout, end, layout.usual_head)
        ends.append(nearest)
    ends.append(_last_end(layout, anchors[-1], plan, starts, ends, length))
    share = agreed / len(ends_at) if ends_at else 0.5
    return starts, ends, share


def _end_of_tower(
    layout: StepLayout, anchors: list[Anchor], number: int, starts: list[int], ends: list[int]
) -> int | None:
    """Where the last block of another model ends, if its pass ends without a norm: where its peers end."""
    one, two = anchors[number : number + 2]
    alike = number > 0 and anchors[number - 1].token == one.token != two.token
    if not alike or not layout.passes_between(one.end, two.start):
        return None
    end = tail_end(layout, one.end, starts, ends)
    return end if end < starts[number + 1] else None


def _vote(layout: StepLayout, one: Anchor, two: Anchor, plan: _Plan) -> tuple[int | None, int, bool]:
    """Return the mark that ends a block, the mark that starts the next, and whether the estimates agree."""
    marks = plan.marks
    # The candidates are marks[low:high]; votes are indices into marks.
    low, high = bisect_right(marks, one.end), bisect_left(marks, two.start)
    if low >= high:
        border = layout.weak_border(one.end, two.start)
        return None, border, False
    before = plan.before.get(two.token, plan.usual_before)
    after = plan.after.get(one.token, plan.usual_after)
    back = max(high - before, low) if before > 0 else None
    onward = low + after if low + after < high else None
    forward = None
    if marks is layout.norms:
        end = layout.feed_forward_end(one.end, two.start)
        if end is not None:
            index = bisect_right(marks, end) + plan.skip
            forward = index if index < high else None
    votes = [vote for vote in (forward, back, onward) if vote is not None]
    if not votes:
        return None, marks[high - 1], False
    # On a tie the feed-forward's end decides, then the count back from the next anchor: a lost kernel disturbs only
    # the counts that run over it.
    counts = Counter(votes)
    chosen = max(counts, key=lambda index: (counts[index], index == forward, index == back))
    # A pass that ends in the gap parts the block's end from the next block's start; what lies between is an epilogue.
    early = chosen if onward is None else min(chosen, onward)
    if back is not None and back > early and layout.passes_between(marks[early], marks[back]):
        return marks[early], layout.first_norm_of_pass(marks[early], marks[back]), True
    return marks[chosen], marks[chosen], len(counts) == 1


def _last_end(layout: StepLayout, anchor: Anchor, plan: _Plan, starts: list[int], ends: list[int], length: int) -> int:
    """Where the last block ends: before the final norm, or where it stops looking like its peers."""
    marks = plan.marks
    # No anchor follows, so only the votes that run forward count: the feed-forward's end, then the usual number.
    low = bisect_right(marks, anchor.end)
    after = plan.after.get(anchor.token, plan.usual_after)
    if marks is layout.norms:
        votes = []
        end = layout.feed_forward_end(anchor.end, length)
        if end is not None and bisect_right(marks, end) + plan.skip < len(marks):
            votes.append(bisect_right(marks, end) + plan.skip)
        if low + after < len(marks):
            votes.append(low + after)
        if votes and (end is None or marks[votes[0]] > end):
            return head_of_norm(layout, marks[votes[0]], layout.usual_head)
    return tail_end(layout, anchor.end, starts, ends)
