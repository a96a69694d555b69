"""A stand-in for the Hugging Face Hub on this machine: a listing, files by ranges, and the Hub's errors."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from tests.core_model.checkpoint import tiny

NAME = "someone/tiny"
_LONGEST_STOP_SECONDS = 30.0
COMMIT = "0123456789abcdef0123456789abcdef01234567"


class StandIn(ThreadingHTTPServer):
    """Serves one repository; `asked` are (method, path, range) of all requests, `errors` codes by repository."""

    daemon_threads = False

    def __init__(self, repository: str, files: Mapping[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repository, self.files = repository, dict(files)
        self.asked: list[tuple[str, str, str]] = []
        self.errors: dict[str, tuple[int, str]] = {}
        self.body: bytes | None = None
        """What is answered to everything, where it is given."""
        self.stops_after: int | None = None
        """Bytes of a body after which nothing more comes, until `let_go` is set and the connection ends."""
        self.has_stopped, self.let_go = threading.Event(), threading.Event()
        self.knows_ranges = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def fetched(self) -> list[str]:
        """Names of the files whose content was asked for."""
        return [path.rpartition("/")[2] for method, path, _ in self.asked if method == "GET" and "/resolve/" in path]


class _Handler(BaseHTTPRequestHandler):
    server: StandIn  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""

    def _answer(self) -> None:
        path = self.path.partition("?")[0]
        self.server.asked.append((self.command, path, self.headers.get("Range", "")))
        if self.server.body is not None:
            return self._send(200, self.server.body, {})
        for name, (status, code) in self.server.errors.items():
            if name in path:
                return self._send(status, b"", {"X-Error-Code": code})
        if listed := re.fullmatch(r"/api/models/(.+)/revision/(.+)", path):
            siblings = [{"rfilename": name, "size": len(body)} for name, body in self.server.files.items()]
            document = {"id": listed[1], "sha": COMMIT, "siblings": siblings}
            return self._send(200, json.dumps(document).encode(), {"Content-Type": "application/json"})
        name = path.rpartition("/")[2]
        body = self.server.files[name]
        headers = {"ETag": f'"{hashlib.sha256(body).hexdigest()}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        begin = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if begin and self.server.knows_ranges:
            start = int(begin[1])
            headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
            return self._send(206, body[start:], headers)
        return self._send(200, body, headers)

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            try:
                self._send_body(body)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the other side was told to stop

    def _send_body(self, body: bytes) -> None:
        most = self.server.stops_after
        if most is None or len(body) <= most:
            self.wfile.write(body)
            return
        self.wfile.write(body[:most])
        self.wfile.flush()
        self.server.has_stopped.set()
        self.server.let_go.wait(_LONGEST_STOP_SECONDS)
        self.close_connection = True


@contextmanager
def serving(repository: str, files: Mapping[str, bytes]) -> Iterator[StandIn]:
    """A stand-in that answers until the block ends."""
    server = StandIn(repository, files)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def hub_of_one_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """A stand-in with the tiny model and much that is not wanted; no token, and a cache of its own in `folder`."""
    source = tiny.write(folder / "source")
    held = {path.name: path.read_bytes() for path in source.iterdir()}
    unwanted = ("pytorch_model.bin", "modeling_custom.py", "README.md", "model.fp16.safetensors", "tf_model.h5")
    monkeypatch.setenv("HF_HUB_CACHE", str(folder / "cache"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(folder / "token"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with serving(NAME, {**held, "vocab.json": b"{}", **dict.fromkeys(unwanted, b"x")}) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server
