"""The mxfp4 number format (OCP Microscaling Formats 1.0): 32 e2m1 values share one e8m0 scale."""

import torch

GROUP = 32
VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""The magnitudes of e2m1, by their three low bits; bit 3 is the sign."""


def dequantize(packed: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Return the values in float64.

    Args:
        packed: ``[..., k / 2]`` uint8, the lower half of a byte is the earlier element.
        scale: ``[..., k / 32]`` uint8, the scale is ``2^(byte - 127)``.
    """
    table = torch.tensor([*VALUES, *(-value for value in VALUES)], dtype=torch.float64, device=packed.device)
    halves = torch.stack((packed & 15, packed >> 4), -1).flatten(-2)  # [..., k]
    scales = torch.exp2(scale.double() - 127).repeat_interleave(GROUP, -1)
    return table[halves.long()] * scales[..., : halves.shape[-1]]


def random_weights(
    shape: tuple[int, int, int], generator: torch.Generator, device: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw packed weights ``[experts, n, k / 2]`` and scales ``[experts, n, k / 32]`` of size about ``k^-1/2``."""
    experts, n, k = shape
    packed = torch.randint(0, 256, (experts, n, k // 2), dtype=torch.uint8, generator=generator, device=device)
    middle = 127 - round(torch.log2(torch.tensor(float(k))).item() / 2) - 1  # e2m1 values have a mean square near 6
    groups = -(-k // GROUP)
    jitter = torch.randint(-1, 2, (experts, n, groups), generator=generator, device=device)
    return packed, (middle + jitter).to(torch.uint8)
