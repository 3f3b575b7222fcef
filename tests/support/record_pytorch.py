"""Record what plain PyTorch does on a CPU: `python -m tests.support.record_pytorch tests/data/traces`.

Small models of random weights; needs torch. What is true of each recording is in tests/segment/test_pytorch_on_cpu.py.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - as everybody calls it
from torch.profiler import ProfilerActivity, profile

WIDTH, HEADS, LAYERS, WORDS, STEPS = 128, 4, 6, 2000, 4


class RootNorm(nn.Module):
    """A norm of elementwise operations, as models from Hugging Face write it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * wide.to(x.dtype)


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    one, two = x.chunk(2, -1)
    return x * cos + torch.cat((-two, one), -1) * sin


class Layer(nn.Module):
    """Attention, fused or of its products and a softmax, and a gated feed-forward network."""

    def __init__(self, *, fused: bool) -> None:
        super().__init__()
        self.fused = fused
        self.qkv = nn.ModuleList(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate, self.up = (nn.Linear(WIDTH, 3 * WIDTH, bias=False) for _ in range(2))
        self.down = nn.Linear(3 * WIDTH, WIDTH, bias=False)
        self.before, self.between = RootNorm(WIDTH), RootNorm(WIDTH)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, cache: list[Tensor]) -> Tensor:
        batch, tokens, _ = x.shape
        normed = self.before(x)
        q, k, v = (part(normed).view(batch, tokens, HEADS, -1).transpose(1, 2) for part in self.qkv)
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        if cache:
            k, v = torch.cat((cache[0], k), 2), torch.cat((cache[1], v), 2)
        cache[:] = [k, v]
        if self.fused:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=tokens > 1)
        else:
            scores = q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS)
            mixed = F.softmax(scores, -1, dtype=torch.float32).to(q.dtype) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, WIDTH))
        normed = self.between(x)
        return x + self.down(F.silu(self.gate(normed)) * self.up(normed))


class Decoder(nn.Module):
    """A small language model."""

    def __init__(self, *, fused: bool) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(Layer(fused=fused) for _ in range(LAYERS))
        self.norm, self.head = RootNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, words: Tensor, places: Tensor, caches: list[list[Tensor]]) -> Tensor:
        x = self.embed(words)
        half = WIDTH // HEADS // 2
        angles = torch.outer(places.float(), 1e4 ** -(torch.arange(half) / half)).repeat(1, 2)
        for layer, cache in zip(self.layers, caches, strict=True):
            x = layer(x, angles.cos().to(x.dtype), angles.sin().to(x.dtype), cache)
        return self.head(self.norm(x[:, -1:]))


def generate(model: Decoder) -> None:
    """One prefill step, then decode steps."""
    words, places = torch.randint(0, WORDS, (2, 16)), torch.arange(16)
    caches: list[list[Tensor]] = [[] for _ in model.layers]
    for _ in range(STEPS):
        words = model(words, places, caches)[:, -1].argmax(-1, keepdim=True)
        places = places[-1:] + 1


def record(path: Path, work: Callable[[], object]) -> None:
    work()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recording:
        work()
    recording.export_chrome_trace(str(path))


def main(folder: Path) -> None:
    """Record everything."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, batch_first=True), LAYERS)
    convolution = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
    network = nn.Sequential(*[convolution] * 8, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)).eval()
    with torch.no_grad():
        for name, fused in (("sdpa", True), ("unfused", False)):
            model = Decoder(fused=fused).bfloat16().eval()
            record(folder / f"pytorch_decoder_{name}.json.gz", lambda model=model: generate(model))
        record(folder / "pytorch_encoder.json.gz", lambda: encoder.eval()(torch.randn(2, 32, WIDTH)))
        record(folder / "pytorch_conv_net.json.gz", lambda: [network(torch.randn(2, 16, 32, 32)) for _ in range(3)])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
