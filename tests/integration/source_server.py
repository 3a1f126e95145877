"""A web server on the loopback that can fail in every way that one on the network can."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[BaseHTTPRequestHandler], None]


def file(data: bytes, kind: str = "application/gzip", status: int = 200) -> Answer:
    """Send ``data`` whole."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def encoded(data: bytes) -> Answer:
    """Send a .tar.gz as some servers do: called gzip-encoded, as if it were to be unpacked."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Encoding", "gzip")
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def truncated(data: bytes, after: int) -> Answer:
    """Promise all of ``data`` and close the connection ``after`` some bytes."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data[:after])

    return answer


def broken_chunks(data: bytes) -> Answer:
    """Send ``data`` in pieces without a length, and break off before the last."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        handler.wfile.write(b"ff\r\nhalf")

    return answer


def redirect(url: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", url)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def slowly(data: bytes, seconds: float) -> Answer:
    """Send half of ``data``, then nothing for ``seconds``, then the rest."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data[: len(data) // 2])
        handler.wfile.flush()
        time.sleep(seconds)
        with contextlib.suppress(OSError):
            handler.wfile.write(data[len(data) // 2 :])

    return answer


class Server:
    """A running server: ``url`` is its address, ``asked`` the paths that were asked for."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.pages: dict[str, Answer] = {}
        self.asked: list[str] = []


@contextlib.contextmanager
def serving() -> Iterator[Server]:
    """A server for as long as the block runs; what it has no page for is a 404."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.close_connection = True
            server.asked.append(self.path)
            answer = server.pages.get(self.path, file(b"not found", "text/plain", 404))
            with contextlib.suppress(ConnectionError):
                answer(self)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        httpd.daemon_threads = True
        server = Server(httpd.server_address[1])
        thread = threading.Thread(target=httpd.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            httpd.shutdown()
            thread.join()


def closed_port() -> int:
    """A port of the loopback on which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextlib.contextmanager
def silent_port() -> Iterator[int]:
    """A port that takes no connection and refuses none: its queue is full."""
    with socket.socket() as listening, contextlib.ExitStack() as waiting:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        port = listening.getsockname()[1]
        for _ in range(4):
            one = waiting.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        yield port
