"""Random chains of every effect at every event that can be intercepted, settled
by the official harness directly and through the gateway: the same outcome, and
the same messages to every backend.

CHAINS is how many (default 150), CHAINS_FIRST the first of them, CHAINS_SEED
what they are made from.
"""

import collections
import copy
import json
import os

from agenthooksprotocol import Hooks

import case
import reducer

COUNT = int(os.environ.get("CHAINS", "150"))
FIRST = int(os.environ.get("CHAINS_FIRST", "0"))
SEED = os.environ.get("CHAINS_SEED", "1")

# What a backend does in its turn.
ANSWER, CRASH, SILENT = "answer", "crash", "silent"


class Scripted:
    """One backend, whose answer each chain sets anew."""

    def __init__(self, own: case.Case):
        self.turn = None
        self.server = own.plain(self.respond)

    def respond(self, message):
        if message["method"] == "hooks/observe":
            return 204, b""
        if self.turn["conduct"] == CRASH:
            return 503, b""
        result = {"protocolVersion": "draft"}
        if self.turn["conduct"] != SILENT:  # which draft reads as no effects
            result["effects"] = self.turn["effects"]
        return 200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()


class Chains(case.Case):
    async def test_direct_equals_through_the_gateway(self):
        backends = [Scripted(self) for _ in range(4)]
        counts = collections.Counter()
        for number in range(FIRST, FIRST + COUNT):
            chain = reducer.Generator(SEED, number).chain(number)
            r = reducer.Generator(SEED + "/conduct", number)
            for turn in chain["turns"]:
                turn["conduct"] = CRASH if r.one(10) else SILENT if not turn["effects"] and r.one(3) else ANSWER
            with self.subTest(number=number, seed=SEED, event=chain["kind"]):
                await self.compare_chain(number, chain, backends, counts)
        for what, count in sorted(counts.items()):
            print(f"{count:8} {what}")
        self.assertGreaterEqual(counts["compared"], COUNT // 2)

    async def compare_chain(self, number, chain, backends, counts):
        hooks = []
        for i, turn in enumerate(chain["turns"]):
            backends[i].turn = turn
            subscription = {
                "events": [chain["kind"]],
                "mode": "intercept",
                "timeoutMs": 5000,
                "failurePolicy": "fail-closed" if turn["closed"] else "fail-open",
                "content": {"default": turn["hide"]},
            }
            hooks.append(case.hook(f"b{i}", backends[i].server.url, subscription))
        try:
            direct = await self.settle(chain, number, hooks)
        except ValueError:
            counts["refused by the harness itself"] += 1
            return
        direct_messages = self.messages(backends)
        served = self.gateway(*hooks)
        discovered = {"id": "com.example.gateway", "transport": {"type": "http", "url": served.url}}
        through = await self.settle(chain, number, [discovered])
        records = served.stop()
        through_messages = self.messages(backends)
        counts["compared"] += 1
        counts[f"compared: {chain['kind']}"] += 1
        self.assertEqual(through_messages, direct_messages)
        if any(record.get("inexact") or record["verdict"] == "error" for record in records):
            # What no effects can say is answered with less, never with more:
            # an ask, a deny or a stop, and an error where the harness takes
            # none of them.
            counts["inexact"] += 1
            if str(through.permission) not in ("ask", "deny") and str(through.flow) != "stop":
                self.assertNotIn("deny", chain["capabilities"].get("effects", ()))
                self.assertIn(-32004, [record.get("error_code") for record in records])
            return
        self.assertEqual(reducer.plain(settled(through)), reducer.plain(settled(direct)))

    def messages(self, backends):
        return [
            sorted(backend.server.inbox.take(), key=lambda message: message["method"]) for backend in backends
        ]

    async def settle(self, chain, number, hooks):
        payload = copy.deepcopy(chain["payload"])
        payload["time"] = "2024-01-01T00:00:00Z"
        async with Hooks(
            case.registration(*hooks), source=case.SOURCE, harness=case.HARNESS, capabilities=reducer.HOST
        ) as harness:
            return await harness.dispatch(
                chain["kind"],
                payload,
                initial_state=copy.deepcopy(chain["state"]),
                capabilities=copy.deepcopy(chain["capabilities"]),
                event_id=f"e{number}",
            )


def settled(result):
    """What a host acts on, and what a person is told who was explicitly denied: a
    second deny of the same response adds nothing."""
    explicit = [deny for deny in case.denials(result) if deny[1] != case.GENERIC_CODE]
    return {**reducer.settled(result), "denial": explicit[:1]}
