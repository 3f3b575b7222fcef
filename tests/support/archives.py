"""Traces of ranks, and archives of them."""

from __future__ import annotations

import io
import tarfile
import zipfile


def of_rank(text: str, rank: int | None, world_size: int = 4) -> bytes:
    stated = "null" if rank is None else f'{{"backend": "nccl", "rank": {rank}, "world_size": {world_size}}}'
    return text.replace('{"backend": "nccl", "rank": 0, "world_size": 1}', stated).encode()


def zipped(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def tarred(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()
