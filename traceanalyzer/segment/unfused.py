"""What nothing fuses: which softmax is attention's, which sigmoid or hyperbolic tangent a feed-forward's activation.

kernel    product  scale  mask  softmax  dropout  copy  product      attention
kernel    product               softmax  top-k    ...   product      a router
kernel    product  top-k  sort  softmax  copy  gather   product      a router
kernel    product               softmax  argmax                      a sampler, or a classifier
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_NEAR = 8
"""Events to either side of a softmax in which its matrix products are looked for: a bias that is looked up, scaled and
added (Swin) takes some. Chosen, not fitted."""
_LONGEST = 12
"""Events from the product before an activation made of elementwise kernels to the one after it: GELU by a hyperbolic
tangent takes nine. Chosen, not fitted."""


@dataclass(frozen=True)
class SoftmaxContext:
    """What the events of a sequence are, one flag an event [events].

    Attributes:
        softmax: a softmax of its own.
        product: a matrix product.
        parting: never within an attention: a norm, a collective, routing, sorting, sampling, another mixer.
        picking: never after an attention's softmax: a reduction, a scan, a gather.
        idle: does no work (aliases in CPU traces), and is not counted.
    """

    softmax: npt.NDArray[np.bool_]
    product: npt.NDArray[np.bool_]
    parting: npt.NDArray[np.bool_]
    picking: npt.NDArray[np.bool_]
    idle: npt.NDArray[np.bool_]


def attending_softmax(context: SoftmaxContext) -> npt.NDArray[np.bool_]:
    """Return for each event whether it is the softmax of unfused attention; linear in the events."""
    attends = np.zeros(len(context.softmax), dtype=np.bool_)
    working = np.flatnonzero(~context.idle)
    softmax = context.softmax[working]
    if not softmax.any():
        return attends
    product = context.product[working]
    place = np.arange(len(working))
    far = 2 * len(working) + _NEAR
    # The last product, and the last event that parts layers, up to each event [working events]; likewise the next ones.
    last_product = np.maximum.accumulate(np.where(product, place, -far))
    last_parting = np.maximum.accumulate(np.where(context.parting[working], place, -far))
    ends = context.parting[working] | context.picking[working] | softmax
    next_product = _next(product, place, far)
    next_end = _next(np.append(ends[1:], False), place, far)  # of the events after each, itself left out
    before = (place - last_product <= _NEAR) & (last_product > last_parting)
    after = (next_product - place <= _NEAR) & (next_product <= next_end)
    attends[working[softmax & before & after]] = True
    return attends


def activating_squash(
    squash: npt.NDArray[np.bool_],
    product: npt.NDArray[np.bool_],
    passing: npt.NDArray[np.bool_],
    idle: npt.NDArray[np.bool_],
) -> npt.NDArray[np.bool_]:
    """Return for each event whether it is the heart of an activation made of elementwise kernels; linear in the events.

        product  mul  sigmoid  mul  product                            quick GELU (CLIP)
        product  pow  mul  add  mul  tanh  add  mul  mul  product      GELU by a hyperbolic tangent (GPT-2)
        product  sigmoid  mul  product                                 a gate of its own: none
        attention  sigmoid  mul  product                               a gate of the attention's output: none

    Args:
        squash: a sigmoid, a hyperbolic tangent, an error function, one flag an event [events].
        product: a matrix product.
        passing: elementwise work, the squashing itself among it.
        idle: does no work, and is not counted.
    """
    activates = np.zeros(len(squash), dtype=np.bool_)
    working = np.flatnonzero(~idle)
    if not squash.any():
        return activates
    place = np.arange(len(working))
    far = 2 * len(working) + _LONGEST
    stop, own = ~passing[working], product[working]
    before = np.maximum.accumulate(np.where(stop, place, -far))
    after = _next(stop, place, far)
    between = own[np.maximum(before, 0)] & own[np.minimum(after, len(working) - 1)]
    near = (before >= 0) & (after < len(working)) & (after - before <= _LONGEST)
    scaled = (place - before > 1) & (after - place > 1)
    activates[working[squash[working] & between & near & scaled]] = True
    return activates


def _next(flags: npt.NDArray[np.bool_], place: npt.NDArray[np.int64], far: int) -> npt.NDArray[np.int64]:
    """Return the place of the next flag from each place on, itself included; `far` where there is none."""
    return np.minimum.accumulate(np.where(flags, place, far)[::-1])[::-1]
