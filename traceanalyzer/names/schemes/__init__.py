"""One module a naming scheme (or a few close ones); `names.registry` imports them all.

To add a scheme: a module here with a reader under `@register(...)`, and a test.
"""
