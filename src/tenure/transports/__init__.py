"""How a message leaves. `egress` is the only way out to an address that somebody else wrote down.

`addresses` knows the special ranges, `policy` says what may be called, `egress` calls it and nothing else,
`webhook` signs. A message is sent once per call: when to try again is decided by the caller.
"""
