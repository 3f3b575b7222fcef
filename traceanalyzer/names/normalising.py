"""Names to group by and names to show: `normalise` and `short_name`."""

from __future__ import annotations

import re
import unicodedata

from traceanalyzer.names.cpp_text import NameView

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,32}")
_CLONE = re.compile(r"\s{0,3}\[clone [^\]]{0,200}\]")
_ROCPRIM = re.compile(r"ROCPRIM_[0-9]{1,12}_NS")
_CUB = re.compile(r"\b(CUB|THRUST|CCCL)_[0-9]{1,12}(?:_(?:SM_)?[0-9]{1,6}){0,40}(?:_NS)?\b")
_INTERNAL = re.compile(r"_GLOBAL__N__[0-9a-f]{8}_[0-9]{1,6}_[A-Za-z0-9_]{1,200}?_[0-9a-f]{8}(?:_[0-9]{1,8})?")
_INDUCTOR_SERIAL = re.compile(r"(?:_[0-9]{1,9}){1,8}$")
_INDUCTOR = re.compile(r"(?:graph_[0-9]{1,6}_)?(?:triton_[a-z]{2,12}_fused|cpp_fused)")
_OBJECT_AT = re.compile(r"_object_at_(?:0x)?[0-9a-f]{1,16}")


def normalise(name: str) -> str:
    """Return the name without what differs from build to build: the key to group and compare kernels by.

    Removed or replaced: surrounding blanks, `.kd`, `[clone ...]`, addresses (0x...), the serial number and
    graph number of Inductor's kernels, the version in the inline namespaces of rocPRIM, CUB and Thrust, the
    hash of an internal-linkage namespace (`_GLOBAL__N__...`), and object addresses in CuTe DSL names.
    Everything else, template arguments and tiles included, stays: two kernels that differ there differ.
    """
    text = name.strip()
    if "0x" in text:
        text = _ADDRESS.sub("0x*", text)
    if "[clone " in text:
        text = _CLONE.sub("", text)
    text = text.removesuffix(".kd")
    if "ROCPRIM_" in text:
        text = _ROCPRIM.sub("ROCPRIM_NS", text)
    if "CUB_" in text or "THRUST_" in text or "CCCL_" in text:
        text = _CUB.sub(r"\1_NS", text)
    if "_GLOBAL__N__" in text:
        text = _INTERNAL.sub("_GLOBAL__N__*", text)
    if "_object_at_" in text:
        text = _OBJECT_AT.sub("_object_at_", text)
    if _INDUCTOR.match(text):
        text = _INDUCTOR_SERIAL.sub("", re.sub(r"^graph_[0-9]{1,6}_", "", text))
    return text


def short_name(name: str, width: int = 60) -> str:
    """A short form to read: `void ns::f<...>(...)` -> `ns::f`, at most `width` characters.

    Template arguments, parameters and lambdas go; a wrapper (`device_kernel<X>`, `kentry`) is followed by
    what it wraps; mangled names show namespace::function. A form that is still too long is cut in its
    middle with an ellipsis. Control characters are shown as escapes (`\\n`, `\\x1b`). Not unique: group by
    `normalise`.
    """
    view = NameView(name)
    text = visible(_readable(view)) or visible(name[:200])
    return shorten(text, width)


def visible(text: str) -> str:
    """Return the text with control, format, surrogate and unassigned characters as backslash escapes."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(character) for character in text)


def _escape(character: str) -> str:
    if character.isprintable() and unicodedata.category(character) not in {"Cf", "Cs", "Cc", "Co", "Cn"}:
        return character
    return character.encode("unicode_escape").decode("ascii")


def shorten(text: str, width: int) -> str:
    """At most `width` characters: the middle gives way to an ellipsis."""
    if len(text) <= width:
        return text
    if width <= 1:
        return "…"[: max(width, 0)]
    tail = (width - 1) // 2
    return text[: width - 1 - tail] + "…" + (text[-tail:] if tail else "")


_WRAPPED_FUNCTION = re.compile(r"[A-Za-z_]\w{0,200}(?:::\w{1,200}){0,20}")
_FUNCTOR = re.compile(r"\b(\w+(?:_kernel_cuda|_kernel_impl|Functor(?:OnSelf)?(?:_\w+)?|Ops)|silu_kernel|gelu_kernel)\b")


def _readable(view: NameView) -> str:
    function = view.function
    last = function.rsplit("::", 1)[-1]
    if last in {"device_kernel", "kentry", "Kernel", "Kernel2"}:
        inner = _wrapped_mangled(view) if view.is_mangled else _wrapped(view)
        return f"{function}<{inner}>" if inner else function
    if function.startswith("at::native::") and not view.is_mangled:
        functor = _FUNCTOR.search(view.text[:4000], view.text.find(function) + len(function))
        return f"{function}<{functor.group(1)}>" if functor else function
    return function


_PLUMBING = frozenset({"enable_sm90_or_later", "enable_sm80_to_sm89", "enable_sm90", "enable_sm100f_only"})


def _wrapped(view: NameView) -> str | None:
    """Return the first type in the template arguments of a wrapper that is not plumbing."""
    start = view.text.find("<", view.text.find(view.function))
    for match in _WRAPPED_FUNCTION.finditer(view.text, max(start, 0), max(start, 0) + 1000):
        if match.group().rsplit("::", 1)[-1] not in _PLUMBING:
            return match.group()
    return None


def _wrapped_mangled(view: NameView) -> str | None:
    """Return the first class among the identifiers of a mangled wrapper."""
    names = (token for token in view.tokens if isinstance(token, str))
    return next((name for name in names if name[0].isupper()), None)
