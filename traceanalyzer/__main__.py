"""``python -m traceanalyzer``."""

from traceanalyzer.cli.main import main

main()
