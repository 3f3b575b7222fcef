"""import_"""
