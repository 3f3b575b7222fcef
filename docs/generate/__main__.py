"""Write every generated page."""

from __future__ import annotations

from docs.generate.pages import FOLDER, PAGES


def main() -> None:
    """Write the pages whose text has changed."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in PAGES.items():
        path, made = FOLDER / name, text()
        if not path.exists() or path.read_text(encoding="utf-8") != made:
            path.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
