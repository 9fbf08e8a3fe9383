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


BACKENDS, OBSERVERS = 5, 2


def conduct(chain, number):
    """Adds to the chain what each backend does in its turn, what else it
    subscribes to, and who observes."""
    r = reducer.Generator(SEED + "/conduct", number)
    family = chain["kind"].split(".")[0] + ".*"

    def selection(default):
        content = {"default": default}
        while r.one(3):
            content[r.pick("text", "images", "files")] = r.pick("body", "metadata", "omit")
        return {"content": content, "includeNative": r.one(3)}

    def observation():
        events = r.pick([chain["kind"]], [family], ["*"], ["session.*", chain["kind"]])
        return {"events": events, "mode": "observe", **selection(r.pick("body", "metadata", "omit"))}

    hooks = []
    for i, turn in enumerate(chain["turns"]):
        turn["conduct"] = CRASH if r.one(10) else SILENT if not turn["effects"] and r.one(3) else ANSWER
        subscription = {
            "events": r.pick([chain["kind"]], [chain["kind"]], [family]),
            "mode": "intercept",
            "timeoutMs": 5000,
            "failurePolicy": "fail-closed" if turn["closed"] else "fail-open",
            **selection(turn["hide"]),
        }
        subscriptions = [subscription]
        if r.one(8):
            subscriptions.append({**subscription, **selection(r.pick("body", "metadata", "omit"))})
        if r.one(8):
            subscriptions.insert(r.r.randrange(2), observation())
        hooks.append((i, subscriptions))
    for i in range(r.pick(0, 0, 1, 2)):
        subscriptions = [observation() for _ in range(r.pick(1, 1, 2))]
        hooks.insert(r.r.randrange(len(hooks) + 1), (BACKENDS + i, subscriptions))
    if r.one(3):
        chain["payload"]["native"] = r.value(2)
    chain["hooks"] = hooks


class Chains(case.Case):
    async def test_direct_equals_through_the_gateway(self):
        backends = [Scripted(self) for _ in range(BACKENDS + OBSERVERS)]
        counts = collections.Counter()
        for number in range(FIRST, FIRST + COUNT):
            chain = reducer.Generator(SEED, number).chain(number)
            conduct(chain, number)
            with self.subTest(number=number, seed=SEED, event=chain["kind"]):
                await self.compare_chain(number, chain, backends, counts)
        for what, count in sorted(counts.items()):
            print(f"{count:8} {what}")
        self.assertGreaterEqual(counts["compared"], COUNT // 2)

    async def compare_chain(self, number, chain, backends, counts):
        for backend, turn in zip(backends, chain["turns"]):
            backend.turn = turn
        hooks = [
            case.hook(f"b{i}", backends[i].server.url, *subscriptions) for i, subscriptions in chain["hooks"]
        ]
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
        errors = [record["error_code"] for record in records if record["verdict"] == "error"]
        if errors == [-32003]:
            # A fail-closed failure where the harness takes no deny: an error,
            # of which the harness makes a deny of its own.
            counts["failed closed without a deny"] += 1
            self.assertEqual((str(through.permission), str(direct.permission)), ("deny", "deny"))
            return
        if errors or any(record.get("inexact") for record in records):
            # What no effects can say is answered with less, never with more:
            # an ask, a deny or a stop, and an error where the harness takes
            # none of them.
            counts["inexact"] += 1
            if str(through.permission) not in ("ask", "deny") and str(through.flow) != "stop":
                self.assertNotIn("deny", chain["capabilities"].get("effects", ()))
                self.assertEqual(errors, [-32004])
            return
        self.assertEqual(reducer.plain(settled(through)), reducer.plain(settled(direct)))

    def messages(self, backends):
        return [
            sorted(backend.server.inbox.take(), key=order) for backend in backends
        ]

    async def settle(self, chain, number, hooks):
        payload, original = reducer.occurrence(chain, number, case.SOURCE, dict(case.HARNESS))
        async with Hooks(
            case.registration(*hooks), source=case.SOURCE, harness=case.HARNESS, capabilities=reducer.HOST
        ) as harness:
            if original is not None:
                asked = original["params"]["event"]
                await harness.dispatch(asked["type"], copy.deepcopy(asked))
            return await harness.dispatch(
                chain["kind"],
                payload,
                initial_state=copy.deepcopy(chain["state"]),
                capabilities=copy.deepcopy(chain["capabilities"]),
                event_id=f"e{number}",
                original_request=original,
            )


def order(message):
    """Interceptions in the order of arrival, before observations, which have none."""
    return message["method"], json.dumps(message) if message["method"] == "hooks/observe" else ""


def settled(result):
    """What a host acts on, and what a person is told who was explicitly denied: a
    second deny of the same response adds nothing."""
    explicit = [deny for deny in case.denials(result) if deny[1] != case.GENERIC_CODE]
    return {**reducer.settled(result), "denial": explicit[:1]}
