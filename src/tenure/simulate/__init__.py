"""The fairness policy over a described load: what waits, what shares, before anybody buys a machine.

`load` is the description, `read` takes it from TOML; `jobs` draws the jobs, the same for every policy; `fair` is the
policy of `core.fairness` and of the claim statements, kept up to date in O(log lanes) per decision; `fifo` is the plain
queue it is compared with; `run` plays the events; `ledger` keeps the accounts; `summary` says what came out; `chart`
draws it; `scenarios` are loads that ship with Tenure.
"""
