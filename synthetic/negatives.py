"""Traces of what is not a transformer: whoever finds transformer blocks in them claims too much.

A family is a function from a `Library` to the kernels of one pass. `FITTED` families chose the thresholds of
`segment/evidence.py`; `UNSEEN` ones never did and only measure. The truth of every trace is that it has no blocks.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from synthetic import negative_kernels as n
from synthetic.models import DEVICE_OF_VENDOR
from synthetic.negative_kernels import Library, kernel
from synthetic.spec import Engine, KernelSpec, Launch, ModelSpec, StepSpec, TraceSpec, Vendor

Kernels = list[KernelSpec]


@dataclass(frozen=True)
class Negative:
    """A trace without transformer blocks, and what it is a trace of."""

    family: str
    spec: TraceSpec


def random_negative(seed: int, families: dict[str, Callable[[Library], Kernels]]) -> Negative:
    """Return the trace of a seed, of one of the families; the same seed gives the same one."""
    rng = random.Random(f"negative {seed}")
    vendor: Vendor = rng.choice(("cuda", "cuda", "rocm"))
    family = rng.choice(sorted(families))
    engine: Engine = rng.choice(("profiler_step", "profiler_step", "none"))
    launch: Launch = rng.choice(("eager", "eager", "graph"))
    kernels = families[family](Library.draw(rng, vendor))
    steps = rng.randint(1, 4)
    model = ModelSpec(name=family, layers=(), prologue=tuple(kernels), class_name="Network")
    spec = TraceSpec(
        model=model,
        # The step's marker is ProfilerStep or nothing; its requests are never written down.
        steps=(StepSpec(generation_requests=1),) * steps,
        engine=engine,
        launch=launch,
        vendor=vendor,
        device=DEVICE_OF_VENDOR[vendor],
        jitter=rng.choice((0.0, 0.05, 0.2)),
        gap_us=rng.choice((0.0, 2.0)),
        shuffled=rng.random() < 0.5,
    )
    return Negative(family, spec)


def _cnn(lib: Library) -> Kernels:
    """Residual blocks of convolutions, batch norms and ReLU; pooling and a classifier after them."""
    fused = lib.rng.random() < 0.3
    stages, depth = lib.rng.randint(1, 4), lib.rng.randint(1, 6)
    kernels = [lib.conv(120.0), lib.norm(), kernel(n.RELU), kernel(n.MAX_POOL, 20.0)]
    for _ in range(stages):
        block: Kernels = []
        for _ in range(lib.rng.choice((2, 3))):
            block += [lib.conv(), *([] if fused else [lib.norm()]), kernel(n.RELU)]
        # All blocks of a stage run the same kernels: this is what repeats.
        kernels += [*block, kernel(n.ADD, 6.0), kernel(n.RELU)] * depth
    softmax = [kernel(n.SOFTMAX.format(log2=10))] if lib.rng.random() < 0.5 else []
    return [*kernels, kernel(n.REDUCE.format(op="MeanOps")), lib.product(8.0), *softmax]


def _cnn_training(lib: Library) -> Kernels:
    """The same with a loss, gradients of every convolution, and an optimizer."""
    forward = _cnn(lib)
    back: Kernels = [kernel(n.LOG_SOFTMAX), kernel(n.elementwise("nll_loss_forward")), lib.product(), lib.product()]
    for _ in range(lib.rng.randint(3, 20)):
        back += [kernel(n.elementwise("threshold_backward")), kernel(n.BATCH_NORMS_BACK, 40.0), *lib.conv_back()]
        back += [kernel(n.ADD, 5.0)] * lib.rng.randint(0, 2)
    return [*forward, *back, *[kernel(n.ADAM, 30.0)] * lib.rng.randint(1, 30)]


def _dlrm(lib: Library) -> Kernels:
    """Embedding bags, a bottom and a top tower of products, the interaction by a batched product between them."""
    tables = [kernel(lib.rng.choice(n.EMBEDDING_BAGS), 25.0)] * lib.rng.choice((1, 8, 26))
    bottom, top = _tower(lib), _tower(lib)
    interaction = [kernel(n.CAT, 5.0), lib.product(15.0), kernel(n.GATHER, 6.0), kernel(n.CAT, 5.0)]
    tail = [kernel(n.SIGMOID)]
    if lib.rng.random() < 0.5:
        tail += [*[lib.product(), lib.product(), kernel(n.RELU)] * lib.rng.randint(2, 8), kernel(n.ADAM, 40.0)]
    return [*bottom, *tables, *interaction, *top, *tail]


def _tower(lib: Library) -> Kernels:
    layer = [lib.product(), kernel(lib.rng.choice(n.ACTIVATIONS))]
    if lib.rng.random() < 0.3:
        layer = [kernel(n.LAYER_NORM), *layer]
    if lib.rng.random() < 0.3:
        layer.append(kernel(n.DROPOUT))
    return layer * lib.rng.randint(2, 12)


def _unet(lib: Library) -> Kernels:
    """Residual convolutions with group norms; attention over the pixels at some resolutions; up and down again."""
    kernels: Kernels = [lib.conv()]
    norm = [kernel(name, 6.0) for name in n.GROUP_NORM] + [kernel(n.elementwise("group_norm"), 4.0)]
    residual = [*norm, kernel(n.SILU), lib.conv(80.0), lib.product(4.0), kernel(n.ADD), *norm, kernel(n.SILU)]
    residual += [lib.conv(80.0), kernel(n.ADD)]
    attends = lib.rng.randint(1, 3)
    spatial = _spatial(lib, norm)
    for level in range(lib.rng.randint(2, 4)):
        kernels += [*residual, *(spatial if level < attends else [])] * lib.rng.randint(1, 3) + [lib.conv()]
    for level in range(lib.rng.randint(2, 4)):
        kernels += [kernel(n.CAT), *residual, *(spatial if level < attends else [])] * lib.rng.randint(1, 3)
        kernels += [kernel(n.UPSAMPLE, 10.0), lib.conv()]
    return [*kernels, *norm, kernel(n.SILU), lib.conv()]


def _spatial(lib: Library, norm: Kernels) -> Kernels:
    """Attention of a U-Net: projections and flash attention between a group norm and a residual addition."""
    projections = [lib.product(10.0)] * lib.rng.choice((1, 3))
    attention = [*projections, kernel(n.FLASH, 40.0), lib.product(10.0), kernel(n.ADD)]
    if lib.rng.random() < 0.5:
        return [*norm, *attention]
    feed_forward = [kernel(n.LAYER_NORM), lib.product(), kernel(n.GELU), kernel(n.MUL), lib.product(), kernel(n.ADD)]
    both = [kernel(n.LAYER_NORM), *attention] * 2
    return [*norm, lib.product(), *both, *feed_forward, lib.product(), kernel(n.ADD)]


def _vae(lib: Library) -> Kernels:
    """A decoder of residual convolutions with one attention over all pixels in the middle."""
    norm = [kernel(name, 6.0) for name in n.GROUP_NORM]
    residual = [*norm, kernel(n.SILU), lib.conv(200.0), *norm, kernel(n.SILU), lib.conv(200.0), kernel(n.ADD)]
    middle = [*norm, lib.product(), lib.product(), lib.product(), kernel(n.FLASH, 90.0), lib.product(), kernel(n.ADD)]
    kernels = [lib.conv(), *residual, *(middle if lib.rng.random() < 0.7 else []), *residual]
    for _ in range(lib.rng.randint(2, 4)):
        kernels += [*residual * lib.rng.randint(2, 3), kernel(n.UPSAMPLE, 30.0), lib.conv(200.0)]
    return [*kernels, *norm, kernel(n.SILU), lib.conv()]


def _moe_batched(lib: Library) -> Kernels:
    """Layers of a mixture of experts alone, the experts' weights gathered and multiplied in batches."""
    routing = [kernel(n.TOPK, 7.0), kernel(n.SORT, 6.0), kernel(n.SOFTMAX.format(log2=1)), kernel(n.COPY)]
    lib.rng.shuffle(routing)
    experts = [kernel(n.GATHER, 100.0)] * 2 + [lib.product(90.0), kernel(n.SILU), lib.product(80.0)]
    layer = [lib.product(4.0), *routing, *experts, kernel(n.MUL), kernel(n.REDUCE.format(op="sum_functor"))]
    if lib.rng.random() < 0.4:
        layer = [kernel(n.LAYER_NORM), *layer, kernel(n.ADD)]
    return layer * lib.rng.randint(1, 12)


def _gemm_loop(lib: Library) -> Kernels:
    """A benchmark of products, with nothing, a fill, elementwise kernels or a softmax between."""
    between = lib.rng.choice(((), (n.COPY,), (n.ADD,), (n.GELU,), (n.SOFTMAX.format(log2=9),), (n.MUL, n.ADD)))
    products = [lib.product() for _ in range(lib.rng.randint(1, 3))]
    loop: Kernels = []
    for product in products:
        loop += [product, *(kernel(name) for name in between)]
    return loop * lib.rng.randint(2, 60)


def _random_graph(lib: Library) -> Kernels:
    """A few kernels in any order, over and over."""
    pool = [n.ADD, n.MUL, n.COPY, n.REDUCE.format(op="sum_functor"), n.SOFTMAX.format(log2=7), n.LAYER_NORM, n.CAT]
    pool += [n.GELU, n.RELU, n.GATHER, *lib.products]
    period = [kernel(lib.rng.choice(pool), lib.rng.uniform(2, 60)) for _ in range(lib.rng.randint(2, 24))]
    return period * lib.rng.randint(1, 40)


def _recurrent(lib: Library) -> Kernels:
    """Products and a cell, once per element of a sequence; normed between layers by chance."""
    step = [lib.product(6.0), *([lib.product(6.0)] if lib.rng.random() < 0.5 else []), kernel(lib.rng.choice(n.CELLS))]
    layer = step * lib.rng.randint(4, 60)
    if lib.rng.random() < 0.3:
        layer.append(kernel(n.LAYER_NORM))
    return [kernel(n.INDEX_SELECT), *layer * lib.rng.randint(1, 4), lib.product(), kernel(n.LOG_SOFTMAX)]


def _graph_network(lib: Library) -> Kernels:
    """Messages along edges by sparse products or scatters, then a product, a norm by chance, ReLU."""
    spread = [kernel(n.INDEX_SELECT, 20.0), kernel(lib.rng.choice(n.SPARSE), 60.0)]
    attends = [kernel(n.SOFTMAX.format(log2=5)), kernel(n.MUL)] if lib.rng.random() < 0.3 else []
    norm = [kernel(n.LAYER_NORM)] if lib.rng.random() < 0.5 else []
    layer = [lib.product(), *attends, *spread, *norm, kernel(n.RELU)]
    return [*layer * lib.rng.randint(2, 12), lib.product(), kernel(n.LOG_SOFTMAX)]


def _mixer(lib: Library) -> Kernels:
    """Norm, product, GELU, product: over the positions, then over the channels. Nothing attends."""
    act = kernel(lib.rng.choice((n.GELU, n.SILU)))
    over_positions = [kernel(n.LAYER_NORM), kernel(n.COPY), lib.product(), act, lib.product(), kernel(n.COPY)]
    over_channels = [kernel(n.LAYER_NORM), lib.product(), act, lib.product(), kernel(n.ADD)]
    return [lib.conv(), *[*over_positions, kernel(n.ADD), *over_channels] * lib.rng.randint(2, 24), lib.product()]


def _conv_next(lib: Library) -> Kernels:
    """A depthwise convolution, a layer norm, two products with GELU between."""
    deep = kernel(n.DEPTHWISE, 30.0) if lib.rng.random() < 0.6 else lib.conv(30.0)
    block = [deep, kernel(n.COPY), kernel(n.LAYER_NORM), lib.product(), kernel(n.GELU), lib.product(), kernel(n.ADD)]
    return [lib.conv(), *block * lib.rng.randint(3, 27), kernel(n.REDUCE.format(op="MeanOps")), lib.product()]


def _moe_loop(lib: Library) -> Kernels:
    """A mixture of experts alone, expert after expert: gather, three products, add to the result."""
    experts = lib.rng.choice((4, 8))
    gate, up, down = lib.product(), lib.product(), lib.product()
    expert = [kernel(n.GATHER), gate, kernel(n.SILU), up, kernel(n.MUL), down, kernel(n.MUL), kernel(n.INDEX_ADD)]
    routing = [kernel(n.SOFTMAX.format(log2=3)), kernel(n.TOPK), kernel(n.REDUCE.format(op="sum")), kernel(n.COPY)]
    norm = [kernel(n.LAYER_NORM)] if lib.rng.random() < 0.5 else []
    return [*norm, lib.product(4.0), *routing, *expert * experts] * lib.rng.randint(1, 6)


def _attention_loop(lib: Library) -> Kernels:
    """A benchmark of attention alone, fused or as two products around a softmax."""
    if lib.rng.random() < 0.5:
        loop = [kernel(n.FLASH, 100.0), *[kernel(n.COPY)] * lib.rng.randint(0, 2)]
    else:
        loop = [lib.product(), kernel(n.MUL), kernel(n.SOFTMAX.format(log2=9), 30.0), lib.product()]
    return loop * lib.rng.randint(2, 60)


def _vocoder(lib: Library) -> Kernels:
    """Dilated convolutions in a row, gated, upsampled; no product at all."""
    block = [lib.conv(25.0), kernel(n.TANH), kernel(n.SIGMOID), kernel(n.MUL), lib.conv(12.0), kernel(n.ADD)]
    return [lib.conv(), *block * lib.rng.randint(4, 40), kernel(n.RELU), lib.conv()]


def _detector(lib: Library) -> Kernels:
    """Convolutions, then boxes: products, sigmoid, sort, suppression, a softmax over classes."""
    boxes = [
        lib.product(),
        kernel(n.RELU),
        lib.product(),
        kernel(n.RELU),
        lib.product(),
        kernel(n.SOFTMAX.format(log2=7)),
    ]
    suppress = [
        kernel(n.SORT),
        kernel(n.GATHER),
        kernel("void nms_kernel_impl<float>(int, double, float const*, long*)"),
    ]
    return [*_cnn(lib)[:-2], kernel(n.SIGMOID), kernel(n.TOPK), *suppress * lib.rng.randint(1, 5), *boxes]


def _ranker(lib: Library) -> Kernels:
    """A tower over features that a softmax weighs: one attention pooling, no layers of it."""
    weigh = [lib.product(), kernel(n.SOFTMAX.format(log2=6)), lib.product()]
    return [kernel(n.EMBEDDING_BAGS[1], 20.0), *_tower(lib), *weigh, *_tower(lib), lib.product(), kernel(n.SIGMOID)]


FITTED: dict[str, Callable[[Library], Kernels]] = {
    "CNN": _cnn,
    "CNN, training": _cnn_training,
    "DLRM": _dlrm,
    "U-Net": _unet,
    "MoE layers, batched": _moe_batched,
    "products in a loop": _gemm_loop,
    "random graph": _random_graph,
    "recurrent": _recurrent,
}
UNSEEN: dict[str, Callable[[Library], Kernels]] = {
    "VAE decoder": _vae,
    "graph network": _graph_network,
    "MLP-mixer": _mixer,
    "ConvNeXt": _conv_next,
    "MoE layers, expert by expert": _moe_loop,
    "attention in a loop": _attention_loop,
    "vocoder": _vocoder,
    "detector": _detector,
    "attention pooling": _ranker,
}
