"""A web server in a thread, for tests of downloads: whole files, cut off, late, not found."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Served:
    """What a server gives, and what it was asked for.

    Attributes:
        address: where it is, with a slash at the end.
        files: contents by name.
        cut: how many bytes of each are sent at most.
        wait: seconds before an answer.
        asked: the names asked for, in order.
    """

    address: str
    files: dict[str, bytes]
    cut: int | None = None
    wait: float = 0.0
    asked: list[str] = field(default_factory=list)


@contextmanager
def serve(files: dict[str, bytes]) -> Iterator[Served]:
    """Serves these files until the block ends."""
    served = Served("", files)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.lstrip("/")
            served.asked.append(name)
            time.sleep(served.wait)
            if name not in served.files:
                self.send_error(404)
                return
            content = served.files[name]
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: served.cut])

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.address = f"http://127.0.0.1:{server.server_address[1]}/"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
