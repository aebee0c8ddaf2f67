"""A child process: loads the handlers once, then runs one job after another for its parent.

`python -m tenure.engine.isolation.child PARENT FD MODULE:FACTORY`: PARENT is the parent's process id, FD one end of a
socket pair, FACTORY gives the kinds.
It dies with its parent: by the kernel's parent-death signal where there is one, and by the socket's end everywhere.
"""

import asyncio
import contextlib
import importlib
import inspect
import os
import queue
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec

from tenure.core.run import Failed, Succeeded
from tenure.engine.context import RunContext
from tenure.engine.handlers import Kind, Kinds
from tenure.engine.isolation.frames import (
    Checkpoint,
    Ended,
    FrameTooLargeError,
    Ready,
    Report,
    Start,
    Stop,
    ToParent,
    pack,
    receive_frame,
)
from tenure.engine.isolation.parent import die_with_parent
from tenure.engine.isolation.work import checked_checkpoint, run_error, stopped_by_handler, succeeded


def main() -> None:
    parent, descriptor, factory = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    if not die_with_parent(parent):
        _exit_with_group()
    channel = socket.socket(fileno=descriptor)
    child = Child(channel)
    try:
        kinds = load_kinds(factory)
    except Exception as error:  # noqa: BLE001  the parent must hear why, whatever it is
        child.send(Ready(error=f"{type(error).__name__}: {error}"))
        return
    child.send(Ready())
    child.serve(kinds)


def load_kinds(factory: str) -> Kinds:
    """Import `module:factory` and call it."""
    module, _, name = factory.partition(":")
    kinds = getattr(importlib.import_module(module), name)()
    if not isinstance(kinds, Kinds):
        raise TypeError(f"{factory} gave {type(kinds).__name__}, not Kinds")
    return kinds


class Child:
    """The child's end of the channel."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._send_lock = threading.Lock()
        self._starts: queue.SimpleQueue[Start] = queue.SimpleQueue()
        self._stop = threading.Event()

    def send(self, frame: ToParent) -> None:
        data = pack(frame)
        with self._send_lock:
            self._channel.sendall(data)

    def serve(self, kinds: Kinds) -> None:
        """Run jobs until the parent is gone."""
        threading.Thread(target=self._listen, daemon=True, name="tenure-channel").start()
        while True:
            start = self._starts.get()
            ended = self._run(kinds[start.claim.kind], start)
            _flush_output()
            try:
                self.send(ended)
            except FrameTooLargeError as error:
                failed = run_error(error)
                self.send(Ended(peak_memory_bytes=ended.peak_memory_bytes, error=failed))

    def _listen(self) -> None:
        while True:
            match receive_frame(self._channel):
                case Start() as start:
                    self._stop.clear()
                    self._starts.put(start)
                case Stop():
                    self._stop.set()
                case None:
                    _exit_with_group()

    def _run(self, kind: Kind, start: Start) -> Ended:
        _reset_peak_memory()
        try:
            value = self._call(kind, self._context(kind, start))
        except BaseException as error:  # noqa: BLE001  a handler may raise anything, SystemExit included
            if stopped_by_handler(error) and self._stop.is_set():
                return Ended(peak_memory_bytes=_peak_memory_bytes(), stopped=True)
            return Ended(peak_memory_bytes=_peak_memory_bytes(), error=run_error(error))
        match succeeded(value):
            case Succeeded(result=result):
                return Ended(peak_memory_bytes=_peak_memory_bytes(), result=result)
            case Failed(error=failure):
                return Ended(peak_memory_bytes=_peak_memory_bytes(), error=failure)
            case other:
                raise AssertionError(other)

    def _context(self, kind: Kind, start: Start) -> RunContext:
        return RunContext(
            fence=start.claim.fence,
            tenant_id=start.claim.tenant_id,
            args=msgspec.json.decode(start.claim.args, type=kind.args_type),
            resume_from=start.claim.checkpoint,
            report=lambda progress: self.send(Report(progress)),
            checkpoint=lambda value: self.send(Checkpoint(checked_checkpoint(value))),
            is_cancelled=self._stop.is_set,
        )

    def _call(self, kind: Kind, context: RunContext) -> Any:
        value = kind.handler(context)
        return asyncio.run(value) if inspect.iscoroutine(value) else value


def _flush_output() -> None:
    """What the handler printed belongs to its run, not to the next one. A handler may have closed its output."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()


def _exit_with_group() -> None:
    """End at once, with every process this one started."""
    os.killpg(0, signal.SIGKILL)


def _reset_peak_memory() -> None:
    """Let the kernel count the peak anew, so that a run's figure is its own."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _peak_memory_bytes() -> int | None:
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return None
    line = next((line for line in status.splitlines() if line.startswith("VmHWM:")), None)
    return int(line.split()[1]) * 1024 if line else None


if __name__ == "__main__":
    main()
