"""0.1, which the SDK does not speak: a client and backends written for the test."""

import json
import uuid

import httpx

from case import GENERIC_CODE, GENERIC_REASON, Case, registration

DENY = {
    "type": "deny",
    "reason": "no ☃",
    "code": "com.example.no",
    "extensions": {"com.example.x": [1, None]},
}


def answer(*effects):
    """Answers every request with these effects, and every notification with nothing."""

    def respond(message):
        if "id" not in message:
            return 204, b""
        result = {"protocolVersion": "0.1", "effects": list(effects)}
        return 200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()

    return respond


def broken(message):
    error = {"code": -32603, "message": "secret of the backend", "data": "secret"}
    return 200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode()


def hook(
    name: str, url: str, *modes: str, policy="fail-closed", timeout=5000, events=("tool.after",)
) -> dict:
    subscriptions = {
        "intercept": {
            "events": ["tool.before"],
            "mode": "intercept",
            "timeoutMs": timeout,
            "failurePolicy": policy,
        },
        "observe": {"events": list(events), "mode": "observe"},
    }
    return {
        "id": f"com.example.{name}",
        "transport": {"type": "http", "url": url},
        "subscriptions": [subscriptions[mode] for mode in modes],
    }


def event(kind: str, **more) -> dict:
    return {
        "id": uuid.uuid4().hex,
        "source": "urn:example:interop",
        "type": kind,
        "time": "2026-01-02T03:04:05+02:00",
        "session": {"id": "session-1", "cwd": "/repo"},
        **more,
    }


def tool(**more) -> dict:
    return {"callId": "call-1", "name": "run", "kind": "shell", "input": {"command": "git push ☃"}, **more}


class V01(Case):
    def setUp(self):
        super().setUp()
        self.client = httpx.AsyncClient()

    async def asyncTearDown(self):
        await self.client.aclose()

    def serve(self, *hooks: dict):
        return self.gateway(registration=registration(*hooks, version="0.1"))

    async def intercept(self, served, asked=None) -> dict:
        asked = asked or event("tool.before", tool=tool())
        response = await self.client.post(
            served.url,
            json={
                "jsonrpc": "2.0",
                "id": asked["id"],
                "method": "hooks/intercept",
                "params": {"protocolVersion": "0.1", "event": asked, "capabilities": {"effects": ["deny"]}},
            },
        )
        return response.json()

    async def observe(self, served, told: dict) -> int:
        params = {"protocolVersion": "0.1", "event": told}
        note = {"jsonrpc": "2.0", "method": "hooks/observe", "params": params}
        return (await self.client.post(served.url, json=note)).status_code

    def result(self, *effects) -> dict:
        return {"protocolVersion": "0.1", "effects": list(effects)}

    async def test_passed(self):
        policy = self.plain(answer())
        served = self.serve(hook("policy", policy.url, "intercept"))
        asked = event(
            "tool.before",
            tool=tool(more={"unknown": True}),
            extensions={"com.example.x": {"y": 1.50}},
            unknown=[1, {"two": None}],
        )
        got = await self.intercept(served, asked)
        self.assertEqual(got["result"], self.result())
        [seen] = policy.inbox.all()
        self.assertEqual(seen.message["id"], asked["id"])
        self.assertEqual(seen.event, asked)

    async def test_denied(self):
        first, denying, uncalled = self.plain(answer()), self.plain(answer(DENY)), self.plain(answer())
        served = self.serve(
            hook("first", first.url, "intercept"),
            hook("denying", denying.url, "intercept", policy="fail-open"),
            hook("uncalled", uncalled.url, "intercept"),
        )
        got = await self.intercept(served)
        self.assertEqual(got["result"], self.result(DENY))
        served.stop()
        self.assertEqual(first.inbox.methods(), ["hooks/intercept"])
        self.assertEqual(uncalled.inbox.methods(), [])

    async def test_failed(self):
        denial = {"type": "deny", "reason": GENERIC_REASON, "code": GENERIC_CODE}
        failures = {
            "error": (broken, 5000, "rpc_error"),
            "status": (lambda message: (500, b"{}"), 5000, "status"),
            "two denies": (answer(DENY, DENY), 5000, "effect_conflict"),
            "effect of draft": (answer({"type": "allow"}), 5000, "effect_unknown"),
            "hanging": (lambda message: None, 300, "deadline"),
        }
        for name, (respond, timeout, failure) in failures.items():
            for policy, effects in (("fail-closed", [denial]), ("fail-open", [])):
                with self.subTest(failure=name, policy=policy):
                    failing = self.plain(respond)
                    served = self.serve(
                        hook("policy", failing.url, "intercept", policy=policy, timeout=timeout)
                    )
                    got = await self.intercept(served)
                    self.assertEqual(got["result"], self.result(*effects))
                    [record] = served.stop()
                    self.assertEqual(record["steps"][0]["failure"], failure)

    async def test_observed(self):
        watcher, policy = self.plain(answer()), self.plain(answer())
        served = self.serve(
            hook(
                "watcher",
                watcher.url,
                "observe",
                events=["tool.after", "tool.error", "session.start", "session.end"],
            ),
            hook("policy", policy.url, "intercept"),
        )
        told = [
            event("session.start", session={"id": "session-1"}),
            event("tool.after", tool=tool(output=["a", 1, None])),
            event("tool.error", tool=tool(error={"message": "it broke"})),
            event("session.end", outcome="completed"),
        ]
        for each in told:
            self.assertIn(await self.observe(served, each), (202, 204))
        # In whatever order: several are under way to an observer at once.
        seen = watcher.inbox.wait(len(told))
        self.assertCountEqual([got.event for got in seen], told)
        served.stop()
        self.assertEqual(policy.inbox.all(), [])

    async def test_both_snapshots_on_one_gateway(self):
        policy = self.plain(answer(DENY))
        draft = self.official()
        served = self.gateway(
            registration=[
                registration(hook("policy", policy.url, "intercept"), version="0.1"),
                registration(
                    {
                        "id": "com.example.draft",
                        "transport": {"type": "http", "url": draft.url},
                        "subscriptions": [
                            {"events": ["tool.before"], "mode": "observe", "content": {"default": "omit"}}
                        ],
                    }
                ),
            ]
        )
        got = await self.intercept(served)
        self.assertEqual(got["result"], self.result(DENY))
        served.stop()
        self.assertEqual(draft.inbox.all(), [])
