"""Results to people and programs: terminal tables, JSON documents, plots."""
