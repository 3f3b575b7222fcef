"""What the text of a Python frame says: file, line and function; which frames are plumbing, which the model's code.

The profiler writes ``path(line): function``, where the line is the one on which the function begins, and
``nn.Module: Class_0`` for a call of a module.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_FRAME = re.compile(r"(?P<file>[^\x00]{1,4096}?)\((?P<line>\d{1,9})\): (?P<function>.*)", re.DOTALL)
_MODULE = re.compile(r"nn\.Module: (?P<name>.+?)(?:_\d+)?", re.DOTALL)
_INSTALLED = re.compile(r".*/(?:site|dist)-packages/")
_CHECKOUT = re.compile(
    r"(?:.*/)?(?P<folder>[A-Za-z_]\w*)/python/(?=(?P=folder)/)|.*/(?P<repository>[A-Za-z_]\w*)/(?=(?P=repository)/)"
)
"""The folder of a repository in which the package of its name lies: ``sglang/python/sglang``, ``vllm/vllm``."""

_PLUMBING_FILES = re.compile(
    r"(?:.*/)?(?:"
    r"torch/(?:nn/modules/module|nn/modules/container|_ops|_tensor|_jit_internal|overrides|functional|nn/functional"
    r"|utils/_contextlib|utils/_device|utils/_pytree|library|_compile|_C/.*|cuda/(?:graphs|streams|__init__))\.py"
    r"|torch/(?:_dynamo|_inductor|_functorch|_library|_higher_order_ops|_subclasses|fx|autograd|jit|profiler"
    r"|distributed)/.*"
    r"|triton/(?:runtime|backends|compiler|knobs|language)(?:/.*|\.py)"
    r"|(?:contextlib|functools|threading|typing|inspect|abc|enum|dataclasses|copy|logging/__init__)\.py"
    r"|torch_guard\.py|vllm/compilation/.*|sglang/srt/compilation/.*"
    r"|(?:.*/)?_custom_ops\.py|.*/custom_op\.py|.*/kernel_shape_profiler\.py|.*/multi_platform\.py"
    r")"
)
"""Files whose frames pass a call on and say nothing of where it came from."""

_PLUMBING_FUNCTIONS = re.compile(r"(?:.*/)?jit/core\.py\(\d+\): \w*wrapper|(?:.*/)?jit_kernel/utils\.py\(\d+\): .*")
_COMPILED = re.compile(r"torchinductor|torch_compile_cache|<eval_with_key>|/inductor_cache/")
"""Files that a compiler wrote: their lines say nothing that a reader can open."""

_WRAPPERS = frozenset({"GraphModule", "OptimizedModule", "DistributedDataParallel", "CUDAGraphWrapper"})
"""Modules that only hold another one, or what a compiler made of it."""

_OF_MODEL = re.compile(r"(?:.*/)?(?:models/.+|modeling_\w+|model_executor/models/.+)\.py")


@dataclass(frozen=True)
class Frame:
    """A frame of Python.

    Attributes:
        file: path as shown: from the package on, with forward slashes.
        line: on which the function begins.
        function: its name.
        compiled: whether a compiler wrote the file.
    """

    file: str
    line: int
    function: str
    compiled: bool


@lru_cache(maxsize=65_536)
def frame_of(text: str) -> Frame | None:
    """Return a frame that can tell where a call comes from; None for plumbing, builtins, modules and other text."""
    if text.startswith(("<built-in", "<string>", "nn.Module: ", "<frozen")):
        return None
    matched = _FRAME.fullmatch(text)
    if matched is None or _PLUMBING_FUNCTIONS.fullmatch(text):
        return None
    file = shown_path(matched["file"])
    compiled = _COMPILED.search(matched["file"]) is not None
    if not compiled and _PLUMBING_FILES.fullmatch(file):
        return None
    return Frame(file, int(matched["line"]), matched["function"], compiled)


def is_models(frame: Frame) -> bool:
    """Return whether a frame is of a model's own code, by where models lie in vLLM, SGLang and transformers."""
    return not frame.compiled and _OF_MODEL.fullmatch(frame.file) is not None


def module_class(text: str) -> str | None:
    """Return the class of the module whose call a frame is, without the number of the instance; None for wrappers."""
    if not text.startswith("nn.Module: "):
        return None
    matched = _MODULE.fullmatch(text)
    return matched["name"] if matched and matched["name"] not in _WRAPPERS else None


@lru_cache(maxsize=65_536)
def shown_path(path: str) -> str:
    """Return a path from its package on: what lies before says where a machine keeps it, not what it is."""
    slashed = path.replace("\\", "/")
    installed = _INSTALLED.match(slashed)
    if installed:
        return slashed[installed.end() :]
    checkout = _CHECKOUT.match(slashed)
    return slashed[checkout.end() :] if checkout else slashed
