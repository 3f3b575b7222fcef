"""Write every generated page."""

from __future__ import annotations

from docs.generate.documents import SCHEMAS
from docs.generate.pages import FOLDER, generated


def main() -> None:
    """Write the files whose text has changed; schemas of documents that are gone go, too."""
    FOLDER.mkdir(exist_ok=True)
    made = generated()
    for path in SCHEMAS.glob("*.json"):
        if path not in made:
            path.unlink()
    for path, text in made.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
