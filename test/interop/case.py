"""What the test cases share: a harness in front, backends behind, and a record
of everything that was said."""

import asyncio
import contextlib
import json
import unittest
import uuid
from unittest import mock

import httpx
from agenthooksprotocol import Hooks, Permission, capability, event, state

import backend
import gateway
import wire

GENERIC_REASON = "Required policy backend unavailable."
GENERIC_CODE = "io.ahp-gateway.fail_closed"
HARNESS = event.Harness(name="interop", version="1")
SOURCE = "urn:example:interop"


def host(*, deny=True, **effects) -> capability.HostCapabilities:
    """What the harness can do: these effects at tool.before, and observation."""
    return capability.HostCapabilities(
        tool_before=capability.ToolBeforeCapabilities(
            intercept=capability.ToolBeforeIntercept(deny=deny, **effects), observe=True
        ),
        tool_after=capability.ToolAfterCapabilities(observe=True),
    )


def intercept(policy="fail-closed", timeout=5000, **more) -> dict:
    """The terms of a tool.before; more replaces and adds members."""
    return {
        "events": ["tool.before"],
        "mode": "intercept",
        "timeoutMs": timeout,
        "failurePolicy": policy,
        "content": {"default": "metadata"},
        **more,
    }


def observe(*events) -> dict:
    return {"events": list(events), "mode": "observe", "content": {"default": "body"}}


def hook(name: str, url: str, *subscriptions: dict, **more) -> dict:
    transport = {"type": "http", "url": url, **more.pop("transport", {})}
    return {"id": f"com.example.{name}", "transport": transport, "subscriptions": list(subscriptions), **more}


def bare(name: str, url: str, **more) -> dict:
    """A hook that lists no subscriptions: the backend is asked for them."""
    unlisted = hook(name, url, **more)
    del unlisted["subscriptions"]
    return unlisted


def registration(*hooks: dict, version="draft") -> dict:
    return {"protocolVersion": version, "hooks": list(hooks)}


def tool_before(**more) -> dict:
    """The payload of one tool.before, the same each time but for what more says."""
    return {
        "call": {"id": "call-1"},
        "tool": {
            "name": "run",
            "origin": "native",
            "input": {"command": "git push", "note": "Grüße ☃ \u0000 <&>"},
        },
        "path": "native",
        "session": {"id": "session-1"},
        "time": "2026-01-02T03:04:05Z",
        **more,
    }


def tool_after(**more) -> dict:
    return {
        "call": {"id": "call-1"},
        "tool": {"name": "run", "origin": "native", "input": {"command": "git push"}},
        "path": "native",
        "session": {"id": "session-1"},
        "time": "2026-01-02T03:04:06Z",
        "outcome": "ok",
        "execution": {"status": "executed"},
        "items": [
            {
                "id": uuid.uuid4().hex,
                "role": "tool",
                "parts": [
                    {
                        "id": uuid.uuid4().hex,
                        "kind": "text",
                        "mediaType": "text/plain",
                        "selection": "body",
                        "text": "done ☃",
                    }
                ],
            }
        ],
        **more,
    }


def denials(result) -> list[tuple[str, str | None]]:
    """The reason and code of every deny that the harness accepted, in order."""
    return [
        (effect["reason"], effect.get("code"))
        for response in result.accepted_responses
        for effect in response["result"].get("effects") or []
        if effect["type"] == "deny"
    ]


def outcome(result) -> dict:
    """What a host acts on, and what a person is told who was explicitly denied."""
    return {
        "permission": result.permission,
        "candidate": result.candidate,
        "flow": result.flow,
        "injections": result.injections,
        "messages": result.messages,
        "event": result.event,
        "denials": [deny for deny in denials(result) if deny[1] != GENERIC_CODE],
    }


class Case(unittest.IsolatedAsyncioTestCase):
    maxDiff = None

    async def asyncSetUp(self):
        # The debug mode that unittest sets would report every slow step of the SDK.
        asyncio.get_running_loop().set_debug(False)

    def setUp(self):
        self.inboxes: list[backend.Inbox] = []
        self.answers: list[tuple[dict, httpx.Response]] = []  # of the gateway
        self._addresses: list[str] = []
        send = httpx.AsyncClient.send

        async def recording(client, request, **more):
            response = await send(client, request, **more)
            if str(request.url).startswith(tuple(self._addresses)):
                self.answers.append((json.loads(request.content), response))
            return response

        patch = mock.patch.object(httpx.AsyncClient, "send", recording)
        patch.start()
        self.addCleanup(patch.stop)

    def tearDown(self):
        violations = [wire.request_violation(got.message) for inbox in self.inboxes for got in inbox.seen()]
        violations += [
            wire.answer_violation(
                request, answer.status_code, answer.headers.get("content-type", ""), answer.content
            )
            for request, answer in self.answers
            if answer.status_code not in (401, 403)
        ]
        self.assertEqual([violation for violation in violations if violation], [])

    def official(self, callback=None, **more) -> backend.Official:
        return self._keep(backend.Official(callback, **more))

    def plain(self, respond) -> backend.Plain:
        return self._keep(backend.Plain(respond))

    def _keep(self, server):
        self.inboxes.append(server.inbox)
        self.addCleanup(server.close)
        return server

    def gateway(self, *hooks: dict, environment=None, **configuration) -> gateway.Gateway:
        """Starts a gateway; hooks are the draft registration of its open tenant."""
        if hooks:
            configuration["registration"] = registration(*hooks)
        served = gateway.Gateway(configuration, environment)
        self.addCleanup(served.discard)
        self._addresses.append(served.url.removesuffix("/hooks"))
        return served

    @contextlib.asynccontextmanager
    async def harness(self, *hooks: dict, capabilities=host()):
        async with Hooks(
            registration(*hooks), source=SOURCE, harness=HARNESS, capabilities=capabilities
        ) as harness:
            yield harness

    async def ask(self, *hooks: dict, initial=Permission.NONE, event_id=None, payload=None):
        """Dispatches one tool.before from a new harness with these hooks."""
        async with self.harness(*hooks) as harness:
            return await harness.dispatch(
                "tool.before",
                payload or tool_before(),
                initial_state=state.initial(initial),
                event_id=event_id or uuid.uuid4().hex,
            )

    async def compare(self, *hooks: dict, initial=Permission.NONE):
        """Asks the hooks directly and through a gateway, and checks that the
        outcome and every message to every backend are the same. Returns the
        harness's result of both and the gateway's audit records."""
        event_id = uuid.uuid4().hex
        direct = await self.ask(*hooks, initial=initial, event_id=event_id)
        direct_messages = [
            sorted(inbox.take(), key=lambda message: message["method"]) for inbox in self.inboxes
        ]
        served = self.gateway(*hooks)
        through = await self.ask(
            hook("gateway", served.url, intercept(timeout=20000)), initial=initial, event_id=event_id
        )
        records = served.stop()
        through_messages = [
            sorted(inbox.take(), key=lambda message: message["method"]) for inbox in self.inboxes
        ]
        self.assertEqual(outcome(through), outcome(direct))
        self.assertEqual(through_messages, direct_messages)
        return direct, through, records
