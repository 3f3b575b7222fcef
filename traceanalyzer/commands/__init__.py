"""Commands: a folder each; what several share lies in rooms below."""
