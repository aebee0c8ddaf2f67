"""Any job: its life, and the housekeeping around it. This room knows nothing of exports.

The life of a job, in order: `enqueue` puts it in, `claim` takes it under a lease, `execute` runs its handler in the
kind's `isolation`, `heartbeat` keeps the lease alive from a thread of its own, `settle` ends the run. `housekeeping`
promotes due jobs, takes back lapsed leases and checks the lanes. `worker` ties them together; `doorbells` wake it.
"""
