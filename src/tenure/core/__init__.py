"""Nouns and rules. Nothing here reads a clock, a file, a socket or the environment.

Values made here travel forward through the other rooms; rules made here are what the SQL is tested against.
"""
