"""A fake of Azure's resource manager and of its token endpoint, over TLS, on a world's loopback.

It is an emulator of our own, written from the requests that Packer's azure-arm and the Python
clients make. It proves what is asked for, in which order, and that all that was made is removed. It
proves nothing about Azure: not that a size, an image, a generation, trusted launch or a quota is
accepted, not who may do what, not how long anything takes or what else Azure answers.

Packer 1.6.6's azure-arm ignores `ssh_host` (builder/azure/common/lin/ssh.go at its tag v1.6.6): it
dials the address that this fake gives, so that the fake knows one address only, the loopback's.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import subprocess
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from .arm_resources import ArmError, Body, Resources
from .cloud_disk import NAME, given
from .world import LOOPBACK, World

VHD_FOOTER = 512

MANAGEMENT, LOGIN = "management.azure.com", "login.microsoftonline.com"
NAMES = (MANAGEMENT, LOGIN)
SUBSCRIPTION = "11111111-1111-4111-8111-111111111111"
TENANT = "22222222-2222-4222-8222-222222222222"
CLIENT = "33333333-3333-4333-8333-333333333333"
LOCATION, ELSEWHERE = "westeurope", "eastus"
_POLL = "?api-version=2018-02-01"
GROUP, GALLERY = "images", "hpc"
SECRET = "known-to-the-emulator-alone"


@dataclass(frozen=True)
class Request:
    """One request as it arrived, and the status of its answer."""

    method: str
    path: str
    query: dict[str, str]
    body: Any
    status: int


class FakeArm:
    """Use as a context manager. ``folder`` receives ``ca.pem`` and ``requests.jsonl``."""

    def __init__(self, world: World, folder: Path) -> None:
        self.resources = Resources()
        self.ca, self.log = folder / "ca.pem", folder / "requests.jsonl"
        self.disk = folder / NAME  # what every disk holds
        self.refusals: list[tuple[str, str, ArmError]] = []
        self._operations: dict[str, tuple[int, str]] = {}  # polls that are left, what to delete
        self._lock = threading.Lock()
        _certificates(folder)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.pem", folder / "server.key")
        with world.inside():
            self._server = _Server((LOOPBACK, 443), _Handler)
        self._server.arm = self
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self) -> FakeArm:
        self.log.touch()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def environment(self) -> dict[str, str]:
        """What a program in the world needs to find this Azure and to be let in."""
        return {
            "SSL_CERT_FILE": str(self.ca),
            "REQUESTS_CA_BUNDLE": str(self.ca),
            "AZURE_TENANT_ID": TENANT,
            "AZURE_CLIENT_ID": CLIENT,
            "AZURE_CLIENT_SECRET": SECRET,
            "AZURE_SUBSCRIPTION_ID": SUBSCRIPTION,
            "MVSTACK_AZURE_ARM_ENDPOINT": f"https://{LOOPBACK}",
            "MVSTACK_AZURE_AUTHORITY": f"https://{LOOPBACK}",
        }

    def variables(self) -> dict[str, Any]:
        """What the templates need to build here."""
        return {
            "azure_subscription": SUBSCRIPTION,
            "azure_tenant": TENANT,
            "azure_client_id": CLIENT,
            "azure_client_secret": SECRET,
            "azure_location": LOCATION,
            "azure_vm_size": "Standard_HB176rs_v4",
            "azure_publisher": "debian",
            "azure_offer": "debian-12",
            "azure_sku": "12-gen2",
            "azure_version": "latest",
            "azure_gallery_resource_group": GROUP,
            "azure_gallery": GALLERY,
            "azure_regions": [LOCATION, ELSEWHERE],
        }

    def site(self, image: str) -> None:
        """What a site has before the first build: group, gallery and the image's definition."""
        self.put(GROUP, location=LOCATION)
        gallery = f"{GROUP}/providers/Microsoft.Compute/galleries/{GALLERY}"
        self.put(gallery, location=LOCATION)
        definition = {"osType": "Linux", "osState": "Generalized", "hyperVGeneration": "V2"}
        self.put(f"{gallery}/images/{image}", location=LOCATION, properties=definition)

    def reset(self) -> None:
        """Forget all resources, refusals and requests."""
        with self._lock:
            self.resources = Resources()
            self.refusals.clear()
            self._operations.clear()
            self.log.write_text("")

    def put(self, path: str, **body: Any) -> str:
        """Something that is there before a test begins; its identifier."""
        identifier = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{path}"
        self.resources.put(identifier, body)
        return identifier

    def token(self) -> str:
        """A token that this emulator takes."""
        return _token_text()

    def refuse(self, method: str, path: str, status: int, code: str, message: str) -> None:
        """From now on answer so to ``method`` on paths that the pattern ``path`` is found in."""
        self.refusals.append((method, path, ArmError(status, code, message)))

    def left(self) -> list[str]:
        """What there is: identifiers, without the subscription's part."""
        return [one.split("/resourceGroups/", 1)[-1] for one in self.resources.ids()]

    def requests(self) -> list[Request]:
        """Every request so far, in order."""
        return [Request(**json.loads(line)) for line in self.log.read_text().splitlines()]

    def answer(
        self, method: str, path: str, query: dict[str, str], body: Any, bearer: str, host: str
    ) -> tuple[int, Body | None, dict[str, str]]:
        """Status, body and headers for one request; errors have Azure's form."""
        with self._lock:
            try:
                status, made, headers = self._answer(method, path, query, body, bearer)
            except ArmError as error:
                told = {"code": error.code, "message": error.message}
                status, made, headers = error.status, {"error": told}, {}
            if "Location" in headers:
                headers["Location"] = f"https://{host}{headers['Location']}"
            line = {"method": method, "path": path, "query": query, "body": body, "status": status}
            with self.log.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(line) + "\n")
            return status, made, headers

    def _answer(
        self, method: str, path: str, query: dict[str, str], body: Any, bearer: str
    ) -> tuple[int, Body | None, dict[str, str]]:
        if "/oauth2/" in path or path.endswith("/openid-configuration"):
            return self._token(path, body)
        if bearer != _token_text():
            raise ArmError(401, "AuthenticationFailed", "no bearer token that was issued here")
        if not query.get("api-version"):
            raise ArmError(400, "MissingApiVersionParameter", "api-version is required")
        for wanted, pattern, error in self.refusals:
            if method == wanted and re.search(pattern, path):
                raise error
        if path.startswith("/operations/"):
            return self._poll(path)
        if method == "GET":
            return 200, self.resources.get(path, query.get("$filter", "")), {}
        if method == "HEAD":
            return (204 if self.resources.find(path) else 404), None, {}
        if method == "PUT":
            status, made = self.resources.put(path, body)
            return status, made, {}
        if method == "PATCH":
            return 200, self.resources.patch(path, body), {}
        if method == "POST":
            target, action = path.rsplit("/", 1)
            return 200, self.resources.act(target, action), {}
        if method == "DELETE":
            return self._delete(path)
        raise ArmError(501, "NotImplemented", f"this emulator knows no {method} {path}")

    def blob(self, query: dict[str, str], bytes_: str) -> tuple[int, bytes, dict[str, str]]:
        """The disk that access was given to, as a page blob: its ranges, or some bytes of it."""
        if not self.resources.readable or query.get("sig") != "emulated":
            return 403, b"no access was given", {}
        size = given(self.disk).stat().st_size
        if query.get("comp") == "pagelist":
            step, rows = 1 << 20, ""
            with self.disk.open("rb") as stream:
                for begin in range(0, size, step):
                    data = stream.read(step)
                    if data.count(0) != len(data):
                        end = begin + len(data) - 1
                        rows += f"<PageRange><Start>{begin}</Start><End>{end}</End></PageRange>"
            # the footer's page is a range as well
            rows += (
                f"<PageRange><Start>{size}</Start><End>{size + VHD_FOOTER - 1}</End></PageRange>"
            )
            return 200, f"<PageList>{rows}</PageList>".encode(), {}
        if not bytes_:
            return 200, b"", {"Content-Length": str(size + VHD_FOOTER)}
        begin, end = map(int, bytes_.removeprefix("bytes=").split("-"))
        with self.disk.open("rb") as stream:
            stream.seek(begin)
            return 206, stream.read(end + 1 - begin), {}

    def _delete(self, path: str) -> tuple[int, None, dict[str, str]]:
        if not (found := self.resources.find(path)):
            return (404 if "/providers/" not in path else 204), None, {}
        found.setdefault("properties", {})["provisioningState"] = "Deleting"
        operation = f"/operations/{len(self._operations)}"
        self._operations[operation] = (1, path)
        return 202, None, {"Location": f"{operation}{_POLL}", "Retry-After": "0"}

    def _poll(self, operation: str) -> tuple[int, None, dict[str, str]]:
        """A deletion takes until it was asked for twice; what is deleted is there until then."""
        left, path = self._operations[operation]
        self._operations[operation] = (left - 1, path)
        if left > 0:
            return 202, None, {"Location": f"{operation}{_POLL}", "Retry-After": "0"}
        self.resources.delete(path)
        return 200, None, {}

    def _token(self, path: str, body: Any) -> tuple[int, Body, dict[str, str]]:
        if path.endswith("/openid-configuration"):
            base = f"https://{LOOPBACK}/{TENANT}/oauth2/v2.0"
            return (
                200,
                {
                    "authorization_endpoint": f"{base}/authorize",
                    "token_endpoint": f"{base}/token",
                    "device_authorization_endpoint": f"{base}/devicecode",
                    "issuer": f"https://{LOOPBACK}/{TENANT}/v2.0",
                },
                {},
            )
        if (body.get("client_id"), body.get("client_secret")) != (CLIENT, "hidden"):
            told = {"error": "invalid_client", "error_description": "AADSTS7000215: wrong secret"}
            return 401, told, {}
        answer = {"access_token": _token_text(), "token_type": "Bearer", "expires_in": "3599"}
        if path.endswith("/oauth2/token"):
            answer |= {"expires_on": "4102444800", "not_before": "0", "resource": "any"}
        return 200, answer, {}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    arm: FakeArm

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up (a killed Packer) is no error of the server's."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _handle(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        address = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(address.query).items()}
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
        path = re.sub("/+", "/", address.path)
        arm = self.server.arm
        if path.startswith("/blob/"):
            status, data, more = arm.blob(query, self.headers.get("x-ms-range", ""))
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), **more}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)
            return
        status, made, headers = arm.answer(
            self.command, path, query, self._body(data), bearer, self.headers.get("Host", "")
        )
        text = json.dumps(made).encode() if made is not None else b""
        self.send_response(status)
        for name, value in {**headers, "Content-Type": "application/json"}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    do_GET = do_HEAD = do_PUT = do_POST = do_PATCH = do_DELETE = _handle

    def _body(self, data: bytes) -> Any:
        if "form-urlencoded" not in self.headers.get("Content-Type", ""):
            return json.loads(data) if data else None
        form = {key: values[0] for key, values in parse_qs(data.decode()).items()}
        if form.get("client_secret") == SECRET:
            form["client_secret"] = "hidden"
        return form

    def log_message(self, format: str, *args: object) -> None:
        """The log is FakeArm's."""


def _token_text() -> str:
    """A token that says who it is for, as Packer looks; nobody here checks a signature."""

    def part(value: Body) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    return ".".join(
        [part({"alg": "none", "typ": "JWT"}), part({"oid": CLIENT, "tid": TENANT}), "x"]
    )


def _certificates(folder: Path) -> None:
    """A certificate authority of this test alone, and the server's certificate by it."""
    names = ",".join([*(f"DNS:{name}" for name in NAMES), f"IP:{LOOPBACK}"])
    (folder / "names").write_text(f"subjectAltName={names}\n")
    new = ["openssl", "req", "-newkey", "rsa:2048", "-nodes"]
    sign = ["openssl", "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key"]
    for command in (
        [*new, "-x509", "-days", "2", "-subj", "/CN=test", "-keyout", "ca.key", "-out", "ca.pem"],
        [*new, "-subj", f"/CN={MANAGEMENT}", "-keyout", "server.key", "-out", "server.csr"],
        [*sign, "-CAcreateserial", "-days", "2", "-extfile", "names", "-out", "server.pem"],
    ):
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
