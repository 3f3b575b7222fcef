"""name"""
