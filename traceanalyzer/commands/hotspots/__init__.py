"""hotspots"""
