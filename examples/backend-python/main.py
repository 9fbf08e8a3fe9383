"""A policy backend of the Agent Hooks Protocol on its official SDK: a starting
point to copy. policy.py has its rules, this file the rest."""

import argparse
import asyncio
import hashlib
import hmac
import logging
import os
import socket
import sys
from datetime import timedelta

import uvicorn
from agenthooksprotocol import content, event, subscription
from agenthooksprotocol.configuration import Configuration
from agenthooksprotocol.server import asgi, hooks

from policy import decide

MAX_BODY = 2 << 20  # bytes: more than the gateway sends with its default limits.body
DEADLINE = 5  # seconds, for a message to arrive and to be answered
log = logging.getLogger("backend-python")


def observed(context) -> None:
    log.info('observed "%.64s"', context.event["type"])


# What a registration may leave to the backend to say.
CONFIGURATION = Configuration(
    subscriptions=[
        subscription.Intercept(
            events=[event.TOOL_BEFORE],
            timeout=timedelta(seconds=2),
            failure_policy=subscription.FailurePolicy.FAIL_CLOSED,
            content=content.metadata(),
        ),
        subscription.Observe(events=[event.TOOL_AFTER], content=content.omit()),
    ]
)


class Front:
    """What the SDK leaves to the application: paths, the credential, media type."""

    def __init__(self, application, token: str):
        self._application = application
        self._credential = digest(b"Bearer " + token.encode())

    async def __call__(self, scope, receive, send) -> None:
        headers = dict(scope["headers"])
        media = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
        # Digests of equal length are compared, so that the time taken says
        # nothing about the token.
        known = hmac.compare_digest(digest(headers.get(b"authorization", b"")), self._credential)
        if scope["path"] == "/healthz":
            await answer(send, 200, b"ok\n")
        elif scope["path"] != "/ahp":
            await answer(send, 404)
        elif not known:
            await answer(send, 401, headers=[(b"www-authenticate", b"Bearer")])
        elif scope["method"] == "POST" and media != b"application/json":
            await answer(send, 415)
        else:
            async with asyncio.timeout(DEADLINE):
                await self._application(scope, receive, send)


def digest(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()


async def answer(send, status: int, body: bytes = b"", headers=()) -> None:
    headers = [(b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Server(uvicorn.Server):
    """Says where it listens, which matters with port 0."""

    async def startup(self, sockets=None) -> None:
        await super().startup(sockets)
        host, port = sockets[0].getsockname()
        print(f"listening on http://{host}:{port}", flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--listen", default="127.0.0.1:9001", help="address to serve on; port 0 takes any free port")
    host, _, port = arguments.parse_args().listen.rpartition(":")
    token = os.environ.get("POLICY_TOKEN")
    if not token:
        sys.exit("POLICY_TOKEN is not set: set it to the token that callers have to send")
    logging.basicConfig(format="%(name)s: %(message)s", level=logging.INFO)
    application = asgi.App(
        hooks.Handlers(
            intercept=hooks.InterceptHandlers(tool_before=decide),
            observe=hooks.ObserveHandlers(any=observed),
            configuration=CONFIGURATION,
        ),
        max_bytes=MAX_BODY,
    )
    # At SIGTERM uvicorn finishes what it has begun, for at most 5 s.
    Server(
        uvicorn.Config(
            Front(application, token),
            lifespan="off",
            access_log=False,
            log_level="warning",
            timeout_keep_alive=60,  # seconds: longer than the gateway's own, which is 4
            timeout_graceful_shutdown=5,
        )
    ).run(sockets=[socket.create_server((host, int(port)))])


if __name__ == "__main__":
    main()
