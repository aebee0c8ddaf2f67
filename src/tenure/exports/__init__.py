"""What the customer buys: an export, from the request to the download.

`catalogue` and `request` say what may be asked; `admit` takes it in, in one transaction; a worker's child process
carries it out (`run`: `plan`, `read`, `write`, `manifest`); `publish` makes it visible in the transaction that ends
its job; `deliver` tells the customer; `download` hands files out; `expire` deletes what is past its time; `verify`
checks a package anywhere.
"""
