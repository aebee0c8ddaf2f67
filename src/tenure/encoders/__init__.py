"""Rows to bytes: what surrounds the text a source renders (header, dialect), and how bytes are packed.

Same input, same bytes: no clock, no name and no thread count leaves a trace in a file.
"""
