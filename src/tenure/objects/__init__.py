"""Where files are kept. `port` says what an object store must do; every driver passes its contract suite.

An object appears whole or not at all, is never overwritten, and its key names the attempt that wrote it.
"""
