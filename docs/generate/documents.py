"""json.md and docs/schemas: the fields of every JSON document, from their declarations."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from docs.generate.markdown import join, note, table
from traceanalyzer.show.schema import documents, schema_of

SCHEMAS = Path(__file__).resolve().parent.parent / "schemas"
"""Where the schemas are written."""
DESCRIPTION = re.compile(
    r"(?P<meaning>.*?)(?: Unit: (?P<unit>.*?)\.)?(?: Basis: (?P<basis>.*?)\.)?(?: Null: (?P<null>.*?)\.?)?$", re.DOTALL
)

HEAD = """
# JSON documents

With `--json` a command prints one document on stdout and nothing else; messages go to stderr. Each document names its
`schema`; the number after the name rises when a key is renamed or removed. Keys may be added without that, so ignore
unknown ones. All keys below are always present unless stated; what is unknown is null, never 0, -1 or empty.
Times are µs unless the unit says otherwise, exact to 1 ns.

`[]` stands for every entry of a list, `{}` for every key of an object whose keys are not fixed. The JSON Schema of a
document is [docs/schemas](../schemas)`/NAME.json`; it describes this version strictly, without other keys.
"""


class Field(NamedTuple):
    """One line of a table: where it is, its type, its unit, its meaning, and when it is null."""

    path: str
    type: str
    unit: str
    meaning: str
    null: str


def page() -> str:
    """Return the page's text."""
    schemas = {name: schema_of(document) for name, document in documents().items()}
    index = table(
        ("command", "schema"),
        ((f"`{one['title']}`", f"[{name}](#{name})") for name, one in schemas.items()),
    )
    parts = [note("the declarations in traceanalyzer/commands/*/result.py"), HEAD.strip(), index]
    for name, one in schemas.items():
        rows = [(f"`{f.path}`", f.type, f.unit, f.meaning, f.null) for f in fields(one)]
        head = f"`{one['title']}`: {one['description']} Schema `{one['properties']['schema']['const']}`."
        parts += [f"## {name}", head, table(("field", "type", "unit", "meaning", "null when"), rows)]
    return join(*parts)


def schema_files() -> dict[Path, str]:
    """Return the text of every schema file."""
    schemas = {SCHEMAS / f"{name}.json": schema_of(document) for name, document in documents().items()}
    return {path: f"{json.dumps(schema, indent=2, ensure_ascii=False)}\n" for path, schema in schemas.items()}


def read(path: Path) -> dict[str, Any]:
    """Return a schema."""
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema


def fields(schema: dict[str, Any]) -> Iterator[Field]:
    """Walk every field of a schema, in its order; a document within another one is not walked twice."""
    for name, value in schema["properties"].items():
        if name != "schema":
            yield from _walk(schema, value, name)


def _walk(root: dict[str, Any], value: dict[str, Any], path: str) -> Iterator[Field]:
    value = resolved(root, value)
    if "description" in value:
        found = DESCRIPTION.match(value["description"])
        assert found is not None
        parts = {key: text or "" for key, text in found.groupdict().items()}
        yield Field(path, _type(root, value), parts["unit"], _told(parts, value), parts["null"])
    if "const" in value.get("properties", {}).get("schema", {}):
        return
    for name, member in value.get("properties", {}).items():
        yield from _walk(root, member, f"{path}.{name}")
    if isinstance(value.get("additionalProperties"), dict):
        yield from _walk(root, value["additionalProperties"], f"{path}{{}}")
    if "items" in value:
        yield from _walk(
            root, {k: v for k, v in resolved(root, value["items"]).items() if k != "description"}, f"{path}[]"
        )


def _told(parts: dict[str, str], value: dict[str, Any]) -> str:
    basis = f" ({parts['basis']})" if parts["basis"] else ""
    return parts["meaning"] + basis + _values(value)


def resolved(root: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    """Follow references, and take an alternative of something and null as that something."""
    while "$ref" in value:
        target: Any = root
        for step in value["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        value = {**target, **{key: one for key, one in value.items() if key != "$ref"}}
    if "anyOf" in value:
        first = resolved(root, value["anyOf"][0])
        return {**first, **{key: one for key, one in value.items() if key != "anyOf"}, "type": [first["type"], "null"]}
    return value


def _type(root: dict[str, Any], value: dict[str, Any]) -> str:
    if "enum" in value:
        return "string"
    types = value.get("type", "string")
    named = [one for one in ([types] if isinstance(types, str) else types) if one != "null"]
    if named == ["array"]:
        items = resolved(root, value["items"])
        return f"list of {_type(root, items)}s" if items.get("type") != "object" else "list"
    return " or ".join(named)


def _values(value: dict[str, Any]) -> str:
    told = [f"`{one}`" for one in value.get("enum", ()) if one is not None]
    return f" One of {', '.join(told)}." if told else ""
