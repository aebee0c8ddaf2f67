"""What a worker and its child process say to each other: length-prefixed MessagePack over a socket pair."""

import asyncio
import socket
import struct

import msgspec

from tenure.core import limits
from tenure.core.job import Claim
from tenure.core.run import RunError
from tenure.store.progress import Progress

_LENGTH = struct.Struct("!I")


class Start(msgspec.Struct, tag=True, frozen=True):
    """Parent to child: run this."""

    claim: Claim


class Stop(msgspec.Struct, tag=True, frozen=True):
    """Parent to child: stop at the next safe point."""


class Ready(msgspec.Struct, tag=True, frozen=True):
    """Child to parent: handlers are loaded; or they could not be."""

    error: str | None = None


class Report(msgspec.Struct, tag=True, frozen=True):
    """Child to parent: progress."""

    progress: Progress


class Checkpoint(msgspec.Struct, tag=True, frozen=True):
    """Child to parent: keep this to resume from."""

    value: bytes


class Ended(msgspec.Struct, tag=True, frozen=True):
    """Child to parent: the run is over. Exactly one of result, error and stopped is set."""

    peak_memory_bytes: int | None
    result: bytes | None = None
    error: RunError | None = None
    stopped: bool = False


ToChild = Start | Stop
ToParent = Ready | Report | Checkpoint | Ended


class FrameTooLargeError(Exception):
    """A frame is larger than the two sides agreed on."""


def pack(frame: ToChild | ToParent) -> bytes:
    body = msgspec.msgpack.encode(frame)
    if len(body) > limits.CHILD_FRAME_BYTES_MAX:
        raise FrameTooLargeError(f"{len(body)} bytes, at most {limits.CHILD_FRAME_BYTES_MAX}")
    return _LENGTH.pack(len(body)) + body


async def read_frame(reader: asyncio.StreamReader) -> ToParent | None:
    """Parent's side: the child's next frame; None once the child is gone or no longer makes sense."""
    try:
        length = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))[0]
        if length > limits.CHILD_FRAME_BYTES_MAX:
            return None
        body = await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    try:
        return msgspec.msgpack.decode(body, type=ToParent)
    except msgspec.DecodeError:
        return None  # something else wrote on the channel: nothing after it can be trusted


def receive_frame(channel: socket.socket) -> ToChild | None:
    """Child's side: the parent's next frame; None once the parent is gone."""
    head = _receive_exactly(channel, _LENGTH.size)
    if head is None:
        return None
    body = _receive_exactly(channel, _LENGTH.unpack(head)[0])
    return None if body is None else msgspec.msgpack.decode(body, type=ToChild)


def _receive_exactly(channel: socket.socket, count: int) -> bytes | None:
    data = bytearray()
    while len(data) < count:
        try:
            block = channel.recv(count - len(data))
        except ConnectionError:
            return None
        if not block:
            return None
        data += block
    return bytes(data)
