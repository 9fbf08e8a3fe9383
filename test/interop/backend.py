"""Policy backends for the gateway to call."""

import contextlib
import json
import socket
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import uvicorn
from agenthooksprotocol.configuration import Configuration
from agenthooksprotocol.server import asgi, hooks

ARRIVAL_TIMEOUT = 20  # seconds


@dataclass
class Received:
    headers: dict[str, str]
    message: dict

    @property
    def method(self) -> str:
        return self.message["method"]

    @property
    def event(self) -> dict:
        return self.message["params"]["event"]


class Inbox:
    """Every message that one backend got, in order of arrival."""

    def __init__(self):
        self._changed = threading.Condition()
        self._received: list[Received] = []
        self._taken = 0

    def put(self, headers: dict[str, str], body: bytes) -> None:
        with self._changed:
            self._received.append(Received(headers, json.loads(body)))
            self._changed.notify_all()

    def wait(self, count: int) -> list[Received]:
        """Returns what has arrived since the last take once that is count messages."""
        with self._changed:
            if not self._changed.wait_for(
                lambda: len(self._received) - self._taken >= count, ARRIVAL_TIMEOUT
            ):
                raise AssertionError(f"{len(self._received) - self._taken} messages arrived; want {count}")
            return self._received[self._taken :]

    def all(self) -> list[Received]:
        """Returns what has arrived since the last take."""
        with self._changed:
            return self._received[self._taken :]

    def methods(self) -> list[str]:
        return [received.method for received in self.all()]

    def take(self) -> list[dict]:
        """Returns the messages that have arrived since the last take."""
        with self._changed:
            received = self._received[self._taken :]
            self._taken = len(self._received)
        return [each.message for each in received]

    def seen(self) -> list[Received]:
        """Returns everything that ever arrived."""
        with self._changed:
            return list(self._received)


class Official:
    """The official SDK's ASGI application under an official server, in a thread."""

    def __init__(
        self,
        tool_before=None,
        certificate: str | None = None,
        subscriptions: list[dict] | None = None,
    ):
        """certificate is a PEM file with a key and its chain, for https;
        subscriptions are what the backend advertises."""
        self.inbox = Inbox()
        advertised = subscriptions and Configuration.from_dict({"subscriptions": subscriptions})
        app = asgi.App(
            hooks.Handlers(
                intercept=hooks.InterceptHandlers(tool_before=tool_before),
                observe=hooks.ObserveHandlers(any=lambda context: None),
                configuration=advertised,
            )
        )
        self._socket = socket.create_server(("127.0.0.1", 0))
        scheme = "https" if certificate else "http"
        self.url = f"{scheme}://127.0.0.1:{self._socket.getsockname()[1]}/policy"
        self._server = uvicorn.Server(
            uvicorn.Config(
                self._record(app),
                lifespan="off",
                log_config=None,
                access_log=False,
                timeout_graceful_shutdown=1,
                ssl_certfile=certificate,
                ssl_keyfile=certificate,
            )
        )
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]})
        self._thread.start()

    def _record(self, app):
        async def recording(scope, receive, send):
            body = bytearray()
            more = True
            while more:
                part = await receive()
                if part["type"] != "http.request":
                    return
                body += part.get("body", b"")
                more = part.get("more_body", False)
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            self.inbox.put(headers, bytes(body))
            parts = iter([{"type": "http.request", "body": bytes(body), "more_body": False}])

            async def replay():
                return next(parts, None) or await receive()

            await app(scope, replay, send)

        return recording

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


class Plain:
    """A backend that answers what a function says, for what the SDK refuses to say."""

    def __init__(self, respond):
        """respond takes the message and returns a status and a body, or None to
        hang until the backend is closed."""
        self.inbox = inbox = Inbox()
        self._closing = closing = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                inbox.put({name.lower(): value for name, value in self.headers.items()}, body)
                outcome = respond(json.loads(body))
                if outcome is None:
                    closing.wait()
                    self.close_connection = True
                    return
                status, answer = outcome
                self.send_response(status)
                if answer:
                    self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *arguments):
                pass

            def handle(self):
                # The gateway may close while an answer that is too late is written.
                with contextlib.suppress(ConnectionError):
                    super().handle()

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/policy"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def main() -> None:
    """Serves the official application, which passes everything, until killed."""
    served = Official(lambda context: hooks.ToolBeforeReply())
    print(served.url, flush=True)


if __name__ == "__main__":
    main()
