"""Runs in child processes: killable, and unable to take the worker down. Children are kept warm between runs."""

import asyncio
import contextlib
import fcntl
import os
import signal
import socket
import struct
import sys
import termios
from collections import deque
from dataclasses import dataclass, field
from io import BufferedWriter

from tenure.core import limits
from tenure.core.run import Cancelled, Crashed, Failed, Released, RunEnd, RunError, RunUsage, Succeeded
from tenure.engine.isolation.frames import Checkpoint, Ended, Ready, Report, Start, Stop, pack, read_frame
from tenure.engine.isolation.work import StopReason, Work, cut

START_SECONDS = 30.0
LINGER_SECONDS = 1.0
"""After a child's end its last words are read for this long; what it left behind may hold the pipes open for ever."""
LOG_CATCH_UP_STEPS_MAX = 1_000
"""A millisecond or less each: a child that goes on printing is not waited for longer."""
RUNS_PER_CHILD_MAX = 100
"""A child is replaced after this many runs, so that a leak in a handler stays small."""


class ChildStartError(Exception):
    """The child process could not load its handlers."""


@dataclass(slots=True, eq=False)
class ChildProcess:
    """A warm child: its process, the channel to it, and the end of what it printed."""

    process: asyncio.subprocess.Process
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    output: asyncio.StreamReader
    output_pipe: asyncio.ReadTransport
    log: deque[str] = field(default_factory=lambda: deque(maxlen=limits.LOG_TAIL_LINES_MAX))
    log_task: "asyncio.Task[None] | None" = None
    runs: int = 0
    log_idle: bool = False
    """The log has nothing in hand: it waits for the pipe."""

    @classmethod
    async def start(cls, factory: str) -> "ChildProcess":
        """Start a child in a session of its own, so that whatever it starts can be killed with it."""
        ours, theirs = socket.socketpair()
        # A pipe of our own: asyncio's would make `process.wait()` wait for whoever else holds its other end.
        output, output_pipe, printed = await _open_pipe()
        with theirs, printed:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tenure.engine.isolation.child",
                str(os.getpid()),
                str(theirs.fileno()),
                factory,
                pass_fds=[theirs.fileno()],
                stdin=asyncio.subprocess.DEVNULL,
                stdout=printed,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        reader, writer = await asyncio.open_connection(sock=ours, limit=2**20)
        child = cls(process, reader, writer, output, output_pipe)
        child.log_task = asyncio.create_task(child._keep_log())
        await child._wait_ready(factory)
        return child

    async def run(self, work: Work) -> RunEnd:
        """Run one job to its end, or until it has to be stopped. Afterwards `alive` says whether to keep the child."""
        self.runs += 1
        self.log.clear()
        self.writer.write(pack(Start(work.claim)))
        ended = asyncio.create_task(self._last_frame(work))
        stopper = asyncio.create_task(self._stop_when_asked(work))
        try:
            async with asyncio.timeout(work.kind.time_limit_seconds):
                frame = await asyncio.shield(ended)
        except TimeoutError:
            work.stop(StopReason.TIME_LIMIT)
            self.kill()
            frame = await ended
        finally:
            stopper.cancel()
        if frame is None:
            self.kill()
            await self.process.wait()
        await self._catch_up_with_log()
        return self._end(work, frame)

    @property
    def alive(self) -> bool:
        return self.process.returncode is None and not self.writer.is_closing()

    def kill(self) -> None:
        """Kill the child and everything it started. Safe to call twice."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)

    async def close(self) -> None:
        self.kill()
        await self.process.wait()
        self.writer.close()
        if self.log_task is not None:
            await asyncio.wait([self.log_task], timeout=LINGER_SECONDS)
            self.output_pipe.close()
            self.log_task.cancel()

    async def _wait_ready(self, factory: str) -> None:
        try:
            async with asyncio.timeout(START_SECONDS):
                frame = await read_frame(self.reader)
        except TimeoutError:
            frame = None
        if not isinstance(frame, Ready) or frame.error is not None:
            await self.close()
            why = frame.error if isinstance(frame, Ready) else "\n".join(self.log) or "it ended without a word"
            raise ChildStartError(f"a child process could not load {factory}: {why}")

    async def _last_frame(self, work: Work) -> Ended | None:
        """How the run ended; None once the child is gone, even where a process it left behind holds the channel."""
        reading = asyncio.create_task(self._read_until_ended(work))
        gone = asyncio.create_task(self.process.wait())
        try:
            await asyncio.wait([reading, gone], return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                self.kill()
                await asyncio.wait([reading], timeout=LINGER_SECONDS)
            return reading.result() if reading.done() else None
        finally:
            reading.cancel()
            gone.cancel()

    async def _read_until_ended(self, work: Work) -> Ended | None:
        while True:
            match await read_frame(self.reader):
                case Report(progress=progress):
                    work.report(progress)
                case Checkpoint(value=value):
                    work.checkpoint(value)
                case Ended() as ended:
                    return ended
                case None:
                    return None
                case Ready():
                    continue

    async def _stop_when_asked(self, work: Work) -> None:
        await work.stop_asked.wait()
        if not work.lease_lost.is_set():
            self.writer.write(pack(Stop()))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(work.kind.cancel_grace_seconds):
                    await work.lease_lost.wait()
        self.kill()

    def _end(self, work: Work, frame: Ended | None) -> RunEnd:
        code = self.process.returncode
        usage = RunUsage(
            pid=self.process.pid,
            exit_signal=-code if code is not None and code < 0 else None,
            peak_memory_bytes=frame.peak_memory_bytes if frame else None,
            log_tail=cut("\n".join(self.log), limits.TRACEBACK_CHARS_MAX) or None,
        )
        if frame is not None and frame.result is not None:
            return Succeeded(result=frame.result, usage=usage)
        if frame is not None and frame.error is not None:
            return Failed(error=frame.error, usage=usage)
        return _stopped(work, usage, code)

    async def _catch_up_with_log(self) -> None:
        """What the child printed before its last word is in the pipe by now; read it before the run is recorded."""
        for _ in range(LOG_CATCH_UP_STEPS_MAX):
            if self.output_pipe.is_closing():
                return
            descriptor = self.output_pipe.get_extra_info("pipe").fileno()
            waiting = struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, b"\0" * 4))[0]
            await asyncio.sleep(0.001 if waiting else 0)
            if not waiting and self.log_idle:
                return

    async def _keep_log(self) -> None:
        """Drain what the child prints, however much, and keep the last lines."""
        line = b""
        while True:
            self.log_idle = True
            block = await self.output.read(65_536)
            self.log_idle = False
            if not block:
                break
            *lines, line = (line + block).split(b"\n")
            line = line[-4_096:]
            self.log.extend(text[-4_096:].decode(errors="replace") for text in lines)
        if line:
            self.log.append(line.decode(errors="replace"))


async def _open_pipe() -> tuple[asyncio.StreamReader, asyncio.ReadTransport, BufferedWriter]:
    """A pipe: its reading end for us, its writing end for the child."""
    reading, writing = os.pipe()
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb")
    )
    return reader, transport, os.fdopen(writing, "wb")


def _stopped(work: Work, usage: RunUsage, code: int | None) -> RunEnd:
    """End of a run whose child stopped without a result: as asked, or by itself."""
    match work.stop_reason:
        case StopReason.CANCEL:
            return Cancelled(usage=usage)
        case StopReason.RELEASE | StopReason.LOST:
            return Released(reason="the worker stops", usage=usage)
        case StopReason.TIME_LIMIT:
            message = f"the run took longer than {work.kind.time_limit_seconds:g} s"
            error = RunError(error_class="TimeLimitError", message=message, code="time_limit")
            return Failed(error=error, usage=usage)
        case None:
            how = f"by signal {usage.exit_signal}" if usage.exit_signal else f"with exit code {code}"
            error = RunError(error_class="ProcessDied", message=f"the child process ended {how}", code="process_died")
            return Crashed(error=error, usage=usage)


class ChildPool:
    """Warm children, one for each run at a time."""

    def __init__(self, factory: str) -> None:
        self._factory = factory
        self._idle: list[ChildProcess] = []
        self._busy: set[ChildProcess] = set()

    async def warm(self, count: int) -> None:
        """Start children ahead of the first jobs; also shows early that the handlers load."""
        self._idle += await asyncio.gather(*(ChildProcess.start(self._factory) for _ in range(count)))

    async def run(self, work: Work) -> RunEnd:
        child = await self._take()
        self._busy.add(child)
        try:
            return await child.run(work)
        finally:
            self._busy.discard(child)
            if child.alive and child.runs < RUNS_PER_CHILD_MAX and work.stop_reason is None:
                self._idle.append(child)
            else:
                await child.close()

    def kill(self) -> None:
        """Kill every child at once."""
        for child in [*self._idle, *self._busy]:
            child.kill()

    async def close(self) -> None:
        await asyncio.gather(*(child.close() for child in [*self._idle, *self._busy]))
        self._idle.clear()

    async def _take(self) -> ChildProcess:
        while self._idle:
            child = self._idle.pop()
            if child.alive:
                return child
            await child.close()
        return await ChildProcess.start(self._factory)
