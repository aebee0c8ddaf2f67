"""Fetches files through signed links, without any key, and goes on where a broken download ended."""

from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import httpx2

from tenure.cli.demo.running import DemoError

TRIES = 5
TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A whole file. `resumed_at` is the byte that a second request began with; None: one request was enough."""

    path: Path
    bytes: int
    resumed_at: int | None


def fetch(url: str, target: Path, *, break_off: bool = False) -> Fetched:
    """Download to `target`, which appears only when it is whole. `break_off` hangs up half-way once, on purpose."""
    part = target.with_name(f"{target.name}.part")
    part.unlink(missing_ok=True)
    with httpx2.Client(timeout=TIMEOUT_SECONDS, trust_env=False) as client:
        download = _Download(client, url, part)
        download.take(stop_half_way=break_off)
        for _ in range(TRIES):
            if download.whole:
                part.replace(target)
                return Fetched(path=target, bytes=download.have, resumed_at=download.resumed_at)
            download.take()
    raise DemoError(f"{target.name} could not be fetched whole in {TRIES + 1} requests")


class _Download:
    """One file on its way: how much of it is here, and which version of it."""

    def __init__(self, client: httpx2.Client, url: str, part: Path) -> None:
        self._client = client
        self._url = url
        self._part = part
        self._etag = ""
        self._size: int | None = None
        self.have = 0
        self.resumed_at: int | None = None

    @property
    def whole(self) -> bool:
        return self.have == self._size

    def take(self, *, stop_half_way: bool = False) -> None:
        """One request: from the start, or from where the last one ended. A broken connection is no error here."""
        # If-Range: should the file have changed meanwhile, the server sends all of the new one instead.
        headers = {"Range": f"bytes={self.have}-", "If-Range": self._etag} if self._etag else {}
        try:
            with self._client.stream("GET", self._url, headers=headers) as response:
                self._begin(response)
                self._write(response, stop_half_way=stop_half_way)
        except httpx2.TransportError:
            return

    def _begin(self, response: httpx2.Response) -> None:
        length = int(response.headers.get("content-length", 0))
        match response.status_code:
            case HTTPStatus.PARTIAL_CONTENT:
                self.resumed_at = self.have
            case HTTPStatus.OK:
                self.have, self._size, self._etag = 0, length, response.headers.get("etag", "")
                self._part.write_bytes(b"")
            case status:
                raise DemoError(f"the signed link of {self._part.stem} was answered {status}")

    def _write(self, response: httpx2.Response, *, stop_half_way: bool) -> None:
        with self._part.open("ab") as file:
            for block in response.iter_raw():
                file.write(block)
                self.have += len(block)
                if stop_half_way and self._size is not None and self.have >= self._size // 2:
                    return
