"""The block finder: where each transformer block of a step starts and ends, from kernel names alone.

Every block mixes tokens once, so the mixing kernels (`anchors`) count the blocks. A border lies in the gap
between two anchors: after the feed-forward of the one and before the projections of the other, at a norm. Three
estimates vote on which norm it is: the first after the feed-forward's end, the usual number of norms before the
next anchor, the usual number after the last one. How many are usual is read off the step itself; the first
block (nothing of another block before it) and the last (one final norm after it) decide between readings.
The cost is linear in the step's kernels.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from traceanalyzer.segment.anchors import Anchor, find_anchors
from traceanalyzer.segment.block_borders import Layout, head_of_norm, tail_end
from traceanalyzer.segment.confidence import rate
from traceanalyzer.segment.cut import Cut, cut_from_spans
from traceanalyzer.segment.post_norm import closing_norms
from traceanalyzer.segment.repetition import find_repetition
from traceanalyzer.segment.tokens import IntArray, Vocabulary

_MOST_DRAFTS = 16
"""Passes of a draft model behind one of the model."""


def find_blocks(tokens: IntArray, vocabulary: Vocabulary, known: frozenset[int] = frozenset()) -> Cut:
    """Cut a step's kernels, in order of start, into blocks.

    Args:
        tokens: token of each event of the step.
        vocabulary: what the tokens are.
        known: see `find_anchors`.
    """
    anchors = find_anchors(tokens, vocabulary, known)
    if not anchors:
        return find_repetition(tokens, vocabulary)
    layout = Layout.of(tokens, vocabulary)
    plan = _plan(layout, anchors)
    if plan is None:
        return find_repetition(tokens, vocabulary)
    starts, ends, agreement = _borders(layout, anchors, plan)
    if not _plausible(layout, starts, ends):
        return find_repetition(tokens, vocabulary)
    cut = cut_from_spans(len(tokens), starts, ends, 1.0)
    confidence = rate(tokens, starts, ends, agreement, plan.cost)
    return closing_norms(tokens, vocabulary, Cut(cut.block_of, cut.count, confidence))


def _plausible(layout: Layout, starts: list[int], ends: list[int]) -> bool:
    """Return whether most of the blocks multiply matrices: what does not is no transformer block."""
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


def _plan(layout: Layout, anchors: list[Anchor]) -> _Plan | None:
    if layout.norms and bisect_left(layout.norms, anchors[0].start) > 0:
        plan = _plan_for(layout, anchors, layout.norms, feed_forward=True)
        if plan.usual_before > 0:
            return plan
    products = layout.gemms
    if not products or bisect_left(products, anchors[0].start) == 0:
        return _plan_for(layout, anchors, layout.norms, feed_forward=True) if layout.norms else None
    return _plan_for(layout, anchors, products, feed_forward=False)


def _plan_for(layout: Layout, anchors: list[Anchor], marks: list[int], *, feed_forward: bool) -> _Plan:
    """Read off how many marks stand before and after an anchor, the way that fits both ends of the step best."""
    first = bisect_left(marks, anchors[0].start)
    last = len(marks) - bisect_right(marks, anchors[-1].end)
    between: list[tuple[int, int, int, int]] = []  # token before, token after, marks after ffn end, marks in all
    within = _within_passes(layout, anchors)
    if not within and len(anchors) > 1:
        return _plan_for_passes(layout, anchors, marks, feed_forward=feed_forward)
    for one, two in within:
        end = layout.feed_forward_end(one.end, two.start) if feed_forward else None
        inside = bisect_left(marks, two.start) - bisect_right(marks, one.end)
        reach = bisect_left(marks, two.start) - bisect_right(marks, end) if end is not None else -1
        between.append((one.token, two.token, reach, inside))
    if not between:
        return _plan_for_one(layout, anchors[0], marks, first, last, feed_forward=feed_forward)
    to_first = [gap for gap in between if gap[1] == anchors[0].token] or between
    from_last = [gap for gap in between if gap[0] == anchors[-1].token] or between
    with_reach = [gap for gap in to_first if gap[2] > 0]
    by_feed_forward = len(with_reach) * 2 > len(to_first)
    if by_feed_forward:
        reach = _mode(gap[2] for gap in with_reach)
        inside_last = _mode(
            gap[3] - gap[2] for gap in (from_last if any(g[2] > 0 for g in from_last) else between) if gap[2] > 0
        )
    else:
        reach = _mode(gap[3] for gap in to_first)
        inside_last = _mode(gap[3] for gap in from_last) - reach
        between = [(a, b, n, n) for a, b, _, n in between]
    to_head = bool(layout.samples) and layout.samples[-1] > anchors[-1].end
    costs = {
        skip: abs(first - (reach - skip)) + _short_of(last, inside_last + skip, to_head) + 0.25 * min(skip, 2)
        for skip in range(reach)
    }
    skip = min(costs, key=lambda s: (costs[s], s)) if costs else 0
    forward = skip if by_feed_forward else 0
    usable = [gap for gap in between if gap[2] > 0]
    before: dict[int, list[int]] = defaultdict(list)
    after: dict[int, list[int]] = defaultdict(list)
    for one_token, two_token, up_to, inside in usable:
        before[two_token].append(up_to - skip)
        after[one_token].append(inside - up_to + skip)
    usual_before = _mode(n for counts in before.values() for n in counts) if usable else first
    usual_after = _mode(n for counts in after.values() for n in counts) if usable else 0
    return _Plan(
        marks,
        forward,
        {token: max(_mode(counts), 0) for token, counts in before.items()},
        {token: max(_mode(counts), 0) for token, counts in after.items()},
        usual_before,
        usual_after,
        costs.get(skip, 1.0) - 0.25 * min(skip, 2),
    )


def _within_passes(layout: Layout, anchors: list[Anchor]) -> list[tuple[Anchor, Anchor]]:
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
    return missing if to_head else min(missing, 0.4 + abs(last - own))


def _plan_for_one(
    layout: Layout, anchor: Anchor, marks: list[int], first: int, last: int, *, feed_forward: bool
) -> _Plan:
    """The same for a step with a single block: the final norm is the last one between feed-forward and logits."""
    after, skip = max(last - 1, 0), 0
    if feed_forward:
        end = layout.feed_forward_end(anchor.end, layout.length)
        if end is not None:
            product = bisect_right(layout.gemms, end)
            logits = layout.gemms[product] if product < len(layout.gemms) else layout.length
            skip = max(bisect_left(marks, logits) - bisect_right(marks, end) - 1, 0)
            after = bisect_right(marks, end) - bisect_right(marks, anchor.end) + skip
    return _Plan(marks, skip, {anchor.token: first}, {anchor.token: after}, first, after, 0.5)


def _plan_for_passes(layout: Layout, anchors: list[Anchor], marks: list[int], *, feed_forward: bool) -> _Plan:
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
        0.5,
    )


def _mode(values: Iterable[int]) -> int:
    counts = Counter(values)
    return max(counts, key=lambda value: (counts[value], -value)) if counts else 0


def _borders(layout: Layout, anchors: list[Anchor], plan: _Plan) -> tuple[list[int], list[int], float]:
    """Place the borders; the last figure is the share of gaps in which all estimates agree."""
    marks = plan.marks
    by_norm = marks is layout.norms
    length = layout.length
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


def _end_of_tower(layout: Layout, anchors: list[Anchor], number: int, starts: list[int], ends: list[int]) -> int | None:
    """Where the last block of another model ends that a pass ends behind without a norm: where its peers end."""
    one, two = anchors[number : number + 2]
    alike = number > 0 and anchors[number - 1].token == one.token != two.token
    if not alike or not layout.passes_between(one.end, two.start):
        return None
    end = tail_end(layout, one.end, starts, ends)
    return end if end < starts[number + 1] else None


def _vote(layout: Layout, one: Anchor, two: Anchor, plan: _Plan) -> tuple[int | None, int, bool]:
    """Return the mark that ends a block, the mark that starts the next, and whether the estimates agree."""
    marks = plan.marks
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
    counts = Counter(votes)
    chosen = max(counts, key=lambda index: (counts[index], index == forward, index == back))
    early = chosen if onward is None else min(chosen, onward)
    if back is not None and back > early and layout.passes_between(marks[early], marks[back]):
        return marks[early], layout.first_norm_of_pass(marks[early], marks[back]), True
    return marks[chosen], marks[chosen], len(counts) == 1


def _last_end(layout: Layout, anchor: Anchor, plan: _Plan, starts: list[int], ends: list[int], length: int) -> int:
    """Where the last block ends: before the final norm, or where it stops looking like its peers."""
    marks = plan.marks
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
