"""The nginx of docs/fabric.md asks for a password before it asks the server behind it."""

from __future__ import annotations

import base64
import http.server
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from mvstack.support.home import DATA

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/sbin")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Behind(http.server.BaseHTTPRequestHandler):
    asked: list[dict[str, str]]

    def do_GET(self) -> None:
        self.asked.append(dict(self.headers))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"racks")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    if not NGINX:
        pytest.skip("nginx is not installed (apt: nginx-light)")
    Behind.asked = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Behind)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1"
    made = [*shlex.split(make), "-keyout", str(tmp_path / "key"), "-out", str(tmp_path / "pem")]
    subprocess.run(made, check=True, capture_output=True)
    hashed = subprocess.run(["openssl", "passwd", "-6", "right"], check=True, capture_output=True)
    (tmp_path / "users").write_text(f"anna:{hashed.stdout.decode()}")
    port = free_port()
    text = (DATA / "docs" / "fabric.md").read_text()
    conf = re.search(r"```nginx\n(.*?)```", text, re.S)
    assert conf
    site = conf[1]
    for old, new in (
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("/etc/ssl/certs/inam.pem", str(tmp_path / "pem")),
        ("/etc/ssl/private/inam.key", str(tmp_path / "key")),
        ("/etc/nginx/inam.users", str(tmp_path / "users")),
        ("127.0.0.1:8080", f"127.0.0.1:{server.server_port}"),
    ):
        assert old in site
        site = site.replace(old, new)
    paths = "".join(f"{one}_temp_path {tmp_path}/{one};" for one in
                    ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))  # fmt: skip
    (tmp_path / "nginx.conf").write_text(
        f"daemon off; pid {tmp_path}/pid; error_log {tmp_path}/error; events {{}}\n"
        f"http {{ access_log off; {paths}\n{site}}}\n"
    )
    tmp_path.chmod(0o755)
    process = subprocess.Popen([NGINX, "-c", tmp_path / "nginx.conf", "-e", tmp_path / "error",
                                "-g", "user root;"], stderr=subprocess.PIPE)  # fmt: skip
    for _ in range(100):
        with socket.socket() as one:
            if not one.connect_ex(("127.0.0.1", port)):
                break
        time.sleep(0.05)
    yield f"https://127.0.0.1:{port}/"
    process.terminate()
    process.wait(10)
    server.shutdown()


def get(address: str, *login: str) -> int:
    request = urllib.request.Request(address)
    if login:
        word = base64.b64encode(":".join(login).encode()).decode()
        request.add_header("Authorization", f"Basic {word}")
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )
    try:
        with opener.open(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_nobody_comes_through_without_the_password(address: str) -> None:
    assert [get(address), get(address, "anna", "wrong"), get(address, "eve", "right")] == 3 * [401]
    assert Behind.asked == []
    assert get(address, "anna", "right") == 200
    (headers,) = Behind.asked
    assert headers["X-Forwarded-User"] == "anna" and "Authorization" not in headers
