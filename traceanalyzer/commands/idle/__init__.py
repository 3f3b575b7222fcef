"""idle"""
