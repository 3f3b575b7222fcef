"""JSON Schemas of the documents, from their declarations."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Any, Literal, get_args, get_origin

import msgspec

from traceanalyzer.declare import Column, Document, Part, columns, members, parts_of

DIALECT = "https://json-schema.org/draft/2020-12/schema"
VERSION = "Name and version of this document; the version changes when a key is renamed or removed."


def documents() -> dict[str, type[Document]]:
    """Return every document that a command prints, by the name of its schema file."""
    package = import_module("traceanalyzer.commands")
    by_name: dict[str, type[Document]] = {}
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if info.name.endswith(".result"):
            module = import_module(info.name)
            by_name |= {file_name(one): one for one in vars(module).values() if _is_document(one)}
    return dict(sorted(by_name.items()))


def _is_document(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Document) and value is not Document


def tag(document: type[Document]) -> str:
    """Return the value of a document's ``schema``."""
    return str(document.__struct_config__.tag)


def file_name(document: type[Document]) -> str:
    """Return the name of a document's schema file: the word of its tag, unless its ClassVar ``page`` says another."""
    return getattr(document, "page", None) or tag(document).split("/")[1]


def title(document: type[Document]) -> str:
    """Return what a user types for it."""
    command: str = vars(document)["command"]
    return f"traceanalyzer {command} --json"


def schema_of(document: type[Document]) -> dict[str, Any]:
    """Return the JSON Schema of a document: strict, with every field's meaning, unit, basis and when it is null."""
    made = msgspec.json.schema(document)
    parts = {part.__name__: part for part in parts_of(document)}
    defs = {name: _described(parts[name], value) for name, value in made["$defs"].items()}
    top = defs.pop(document.__name__)
    top["properties"]["schema"] = {"const": tag(document), "description": VERSION}
    head = {"$schema": DIALECT, "title": title(document), "description": meaning(document)}
    return {
        **head,
        **{key: value for key, value in top.items() if key not in head},
        **({"$defs": defs} if defs else {}),
    }


def meaning(part: type[Part]) -> str:
    """Return the first paragraph of a part's docstring, on one line."""
    return " ".join((part.__doc__ or "").strip().partition("\n\n")[0].split())


def _described(part: type[Part], value: dict[str, Any]) -> dict[str, Any]:
    """Complete what msgspec writes of a part: descriptions, and plain types where it writes alternatives."""
    properties = value["properties"]
    for column in columns(part):
        written = _merged(properties[column.written])
        if "enum" in written:
            # In the order in which they are declared.
            words = [word for one in members(column.type) if get_origin(one) is Literal for word in get_args(one)]
            written["enum"] = [*words, *([None] if column.nullable else [])]
        written["description"] = description(column)
        properties[column.written] = written
    value = {key: one for key, one in value.items() if key != "title"}
    # A field with a default is written anyway.
    return {**value, "description": meaning(part), "required": list(properties)}


def description(column: Column) -> str:
    """Return a field's meaning, its unit, what it rests on and when it is null, as one text."""
    parts = [column.meaning]
    parts += [f"Unit: {column.unit}."] if column.unit else []
    parts += [f"Basis: {column.basis}."] if column.basis else []
    parts += [f"Null: {column.null}."] if column.null else []
    return " ".join(parts)


def _merged(value: dict[str, Any]) -> dict[str, Any]:
    """Write a value or null as one type where it is not an object: shorter, and what most readers of schemas expect."""
    kept = {key: one for key, one in value.items() if key not in {"anyOf", "default"}}
    for key in ("items", "additionalProperties"):
        if isinstance(kept.get(key), dict):
            kept[key] = _merged(kept[key])
    if "prefixItems" in kept:
        # A fixed number of values of one kind.
        kept["items"] = _merged(kept.pop("prefixItems")[0])
    options = [_merged(one) for one in value.get("anyOf", ())]
    if not options:
        return kept
    if all(set(one) == {"type"} for one in options):
        return {**kept, "type": [one["type"] for one in options]}
    (first, *others) = options
    if others == [{"type": "null"}] and "enum" in first:
        return {**kept, **first, "enum": [*first["enum"], None]}
    if others == [{"type": "null"}] and isinstance(first.get("type"), str):
        return {**kept, **first, "type": [first["type"], "null"]}
    return {**kept, "anyOf": options}
