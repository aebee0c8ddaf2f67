"""`tenure demo`: what a customer and an operator would do, done once before your eyes, and every claim checked.

command   starts Tenure, runs the demo, stops everything
running   what the demo needs of a running Tenure
run       the demo from the first step to `demo ok`
steps     how it prints
client    asks for an export and looks at it, as any customer's program would
watch     shows a running export
crash     kills the worker in the middle of it
download  fetches the package through its signed links
source    what the sample's database itself says
compare   reads the file and the source side by side, cell by cell
"""

from tenure.cli.demo.run import run_demo
from tenure.cli.demo.running import DemoError, Holder, RunningTenure
from tenure.cli.demo.steps import Steps

__all__ = ["DemoError", "Holder", "RunningTenure", "Steps", "run_demo"]
