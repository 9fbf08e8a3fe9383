"""One tool.before of draft, decided by the backends directly and through the gateway."""

import asyncio
import itertools
import subprocess
import sys
import uuid

import httpx

from agenthooksprotocol import Permission, capability, effect, state
from agenthooksprotocol.server import hooks

import backend
from case import (
    GENERIC_CODE,
    GENERIC_REASON,
    Case,
    bare,
    denials,
    hook,
    host,
    intercept,
    observe,
    tool_before,
)

HANG = 300  # milliseconds that a subscription waits for a backend that never answers


def allow(context):
    return hooks.ToolBeforeReply()


def deny(context):
    return hooks.ToolBeforeReply(
        effects=(effect.Deny(reason="no ☃ “force” pushes", code="com.example.force_push"),)
    )


def deny_plainly(context):
    return hooks.ToolBeforeReply(effects=(effect.Deny(reason="no"),))


def crash(context):
    raise RuntimeError("secret of the backend")


def unavailable(context):
    raise hooks.HTTPError(503, b"secret of the backend")


class Decisions(Case):
    async def test_passed(self):
        policy = self.official(allow)
        direct, through, records = await self.compare(hook("policy", policy.url, intercept()))
        self.assertEqual(through.permission, Permission.NONE)
        self.assertEqual(through.diagnostics, [])
        self.assertEqual([record["verdict"] for record in records], ["pass"])

    async def test_denied(self):
        policy = self.official(deny)
        direct, through, records = await self.compare(hook("policy", policy.url, intercept()))
        self.assertEqual(through.permission, Permission.DENY)
        self.assertEqual(denials(through), [("no ☃ “force” pushes", "com.example.force_push")])
        [record] = records
        self.assertEqual((record["verdict"], record["denied_by"]), ("deny", "com.example.policy"))
        self.assertNotIn("synthetic", record)

    async def test_denied_without_code(self):
        policy = self.official(deny_plainly)
        _, through, _ = await self.compare(hook("policy", policy.url, intercept()))
        self.assertEqual(denials(through), [("no", None)])

    async def test_denied_by_a_fail_open_subscription(self):
        policy = self.official(deny)
        _, through, _ = await self.compare(hook("policy", policy.url, intercept("fail-open")))
        self.assertEqual(through.permission, Permission.DENY)

    async def test_harness_discovers_its_terms(self):
        # With nothing but an id and an address a harness learns by
        # hooks/configuration what it needs to ask and to observe.
        policy, observer = self.official(deny), self.official(allow)
        served = self.gateway(
            hook("policy", policy.url, intercept("fail-open", timeout=700)),
            hook("observer", observer.url, observe("tool.*", "session.*")),
        )
        async with self.harness(bare("gateway", served.url)) as harness:
            self.assertEqual(list(harness.configuration_diagnostics), [])
            result = await harness.dispatch(
                "tool.before", tool_before(), initial_state=state.initial(Permission.NONE)
            )
        self.assertEqual(denials(result), [("no ☃ “force” pushes", "com.example.force_push")])
        [(_, answer)] = [
            (request, answer) for request, answer in self.answers if request["method"] == "hooks/configuration"
        ]
        [terms] = [
            subscription
            for subscription in answer.json()["result"]["configuration"]["subscriptions"]
            if subscription["mode"] == "intercept"
        ]
        self.assertEqual((terms["events"], terms["timeoutMs"], terms["failurePolicy"]), (["tool.before"], 950, "fail-open"))

    async def test_manifest(self):
        served = self.gateway(hook("policy", self.official(allow).url, intercept()))
        ask = {"jsonrpc": "2.0", "id": "m", "method": "hooks/capabilities", "params": {"protocolVersion": "draft"}}
        async with httpx.AsyncClient() as client:
            answer = await client.post(served.url, json=ask)
        self.assertIn("manifest", answer.json()["result"])  # and tearDown validates it

    async def test_every_chain_of_three(self):
        # Each backend passes, denies or crashes, and each subscription has
        # either policy: the chain stops where it would directly, and everyone
        # hears the same.
        kinds = [("pass", allow), ("deny", deny), ("crash", crash)]
        policies = {name: [self.official(callback) for _ in range(3)] for name, callback in kinds}
        for names in itertools.product(policies, repeat=3):
            for closed in ("fail-open", "fail-closed"):
                with self.subTest(chain=names, policy=closed):
                    chain = [
                        hook(f"policy-{turn}", policies[name][turn].url, intercept(closed))
                        for turn, name in enumerate(names)
                    ]
                    await self.compare(*chain)

    async def test_middle_denies(self):
        first, middle, last = self.official(allow), self.official(deny), self.official(allow)
        chain = [
            hook("first", first.url, intercept()),
            hook("middle", middle.url, intercept()),
            hook("last", last.url, intercept()),
        ]
        served = self.gateway(*chain)
        through = await self.ask(hook("gateway", served.url, intercept()))
        records = served.stop()
        self.assertEqual(through.permission, Permission.DENY)
        self.assertEqual(first.inbox.methods(), ["hooks/intercept"])
        self.assertEqual(middle.inbox.methods(), ["hooks/intercept"])
        self.assertEqual(last.inbox.methods(), ["hooks/observe"])
        self.assertEqual([step["outcome"] for step in records[0]["steps"]], ["pass", "deny", "not_called"])

    async def test_order(self):
        calls = []

        def policy(name):
            async def callback(context):
                calls.append(("begin", name))
                await asyncio.sleep(0)
                calls.append(("end", name))
                return hooks.ToolBeforeReply()

            return callback

        names = ["c", "a", "b"]
        chain = [hook(name, self.official(policy(name)).url, intercept()) for name in names]
        served = self.gateway(*chain)
        await self.ask(hook("gateway", served.url, intercept()))
        self.assertEqual(calls, [(what, name) for name in names for what in ("begin", "end")])

    async def test_state_is_passed_through(self):
        policy = self.official(allow)
        for initial in (Permission.NONE, Permission.ALLOW, Permission.ASK):
            with self.subTest(initial=initial):
                direct, through, _ = await self.compare(
                    hook("policy", policy.url, intercept()), initial=initial
                )
                self.assertEqual(through.permission, initial)

    async def test_state_of_each_permission_is_denied(self):
        policy = self.official(deny)
        for initial in (Permission.NONE, Permission.ALLOW, Permission.ASK):
            with self.subTest(initial=initial):
                await self.compare(hook("policy", policy.url, intercept()), initial=initial)

    async def test_denied_before_it_is_asked(self):
        # The harness asks nobody then: it tells the gateway, which tells all.
        policy, watcher = self.official(allow), self.official()
        _, through, records = await self.compare(
            hook("policy", policy.url, intercept()),
            hook("watcher", watcher.url, observe("tool.before")),
            initial=Permission.DENY,
        )
        self.assertEqual(through.permission, Permission.DENY)
        self.assertEqual(records, [])
        self.assertEqual([got.method for got in policy.inbox.seen()], ["hooks/observe"] * 2)

    async def test_no_more_is_advertised_than_the_harness_can_do(self):
        policy = self.official(deny)
        served = self.gateway(hook("policy", policy.url, intercept()))
        wide = host(allow=True, modify_input=capability.Modify.REPLACE, message=True)
        async with self.harness(hook("gateway", served.url, intercept()), capabilities=wide) as harness:
            result = await harness.dispatch("tool.before", tool_before())
        self.assertEqual(result.permission, Permission.DENY)
        [seen] = policy.inbox.all()
        advertised = set(seen.message["params"]["capabilities"]["effects"])
        self.assertLessEqual({"deny"}, advertised)
        self.assertLessEqual(advertised, {"allow", "deny", "message", "modify"})

    async def test_native_is_for_those_who_ask(self):
        curious, modest = self.official(allow), self.official(allow)
        served = self.gateway(
            hook("curious", curious.url, intercept(includeNative=True)),
            hook("modest", modest.url, intercept()),
        )
        native = {"anything": [1, 2.50, None, "☃"]}
        await self.ask(
            hook("gateway", served.url, intercept(includeNative=True)), payload=tool_before(native=native)
        )
        [seen] = curious.inbox.all()
        self.assertEqual(seen.event["native"], native)
        [seen] = modest.inbox.all()
        self.assertNotIn("native", seen.event)

    async def test_many_events_on_one_connection(self):
        policy = self.official(allow)
        served = self.gateway(hook("policy", policy.url, intercept()))
        ids = [uuid.uuid4().hex for _ in range(50)]
        async with self.harness(hook("gateway", served.url, intercept())) as harness:
            for event_id in ids:
                result = await harness.dispatch("tool.before", tool_before(), event_id=event_id)
                self.assertEqual((result.permission, result.diagnostics), (Permission.NONE, []))
        self.assertEqual([got.event["id"] for got in policy.inbox.all()], ids)
        self.assertEqual(len(served.stop()), len(ids))

    async def test_many_events_at_once(self):
        policy = self.official(deny)
        served = self.gateway(hook("policy", policy.url, intercept(timeout=20000)))
        ids = {uuid.uuid4().hex for _ in range(20)}
        async with self.harness(hook("gateway", served.url, intercept(timeout=30000))) as harness:
            results = await asyncio.gather(
                *(harness.dispatch("tool.before", tool_before(), event_id=event_id) for event_id in ids)
            )
        self.assertEqual([result.permission for result in results], [Permission.DENY] * len(ids))
        self.assertEqual({got.event["id"] for got in policy.inbox.all()}, ids)

    async def test_a_repeated_event_is_asked_once(self):
        policy = self.official(deny)
        served = self.gateway(hook("policy", policy.url, intercept()))
        async with self.harness(hook("gateway", served.url, intercept())) as harness:
            event_id = uuid.uuid4().hex
            results = [
                await harness.dispatch("tool.before", tool_before(), event_id=event_id) for _ in range(3)
            ]
        self.assertEqual([denials(result) for result in results], [denials(results[0])] * 3)
        self.assertEqual(policy.inbox.methods(), ["hooks/intercept"])


class Failures(Case):
    """Operational failures under both policies, as the harness itself would handle them."""

    async def check(self, chain, denied: bool, failure: str):
        _, through, [record] = await self.compare(*chain)
        [step] = [step for step in record["steps"] if step["outcome"].startswith("failed")]
        self.assertEqual(step["failure"], failure)
        if denied:
            self.assertEqual(through.permission, Permission.DENY)
            self.assertEqual(denials(through), [(GENERIC_REASON, GENERIC_CODE)])
            self.assertTrue(record["synthetic"])
        else:
            self.assertEqual((through.permission, denials(through)), (Permission.NONE, []))
            self.assertEqual(record["verdict"], "pass")
        for _, answer in self.answers:
            self.assertNotIn("secret", answer.text)

    async def test_crashed(self):
        for policy, denied in (("fail-closed", True), ("fail-open", False)):
            with self.subTest(policy=policy):
                crashed, next_one = self.official(crash), self.official(allow)
                chain = [
                    hook("policy", crashed.url, intercept(policy)),
                    hook("next", next_one.url, intercept()),
                ]
                await self.check(chain, denied, "rpc_error")

    async def test_status(self):
        for policy, denied in (("fail-closed", True), ("fail-open", False)):
            with self.subTest(policy=policy):
                server = self.official(unavailable)
                await self.check([hook("policy", server.url, intercept(policy))], denied, "status")

    async def test_hanging(self):
        for policy, denied in (("fail-closed", True), ("fail-open", False)):
            with self.subTest(policy=policy):
                hanging, next_one = self.plain(lambda message: None), self.official(allow)
                chain = [
                    hook("policy", hanging.url, intercept(policy, timeout=HANG)),
                    hook("next", next_one.url, intercept()),
                ]
                await self.check(chain, denied, "deadline")

    async def test_killed(self):
        for policy, denied in (("fail-closed", True), ("fail-open", False)):
            with self.subTest(policy=policy):
                process, url = self.process()
                served = self.gateway(hook("policy", url, intercept(policy)))
                async with self.harness(hook("gateway", served.url, intercept())) as harness:
                    before = await harness.dispatch("tool.before", tool_before())
                    process.kill()
                    process.wait()
                    after = await harness.dispatch("tool.before", tool_before())
                self.assertEqual(before.permission, Permission.NONE)
                self.assertEqual(after.permission, Permission.DENY if denied else Permission.NONE)
                self.assertEqual(denials(after), [(GENERIC_REASON, GENERIC_CODE)] if denied else [])
                passed, failed = served.stop()
                self.assertEqual(passed["verdict"], "pass")
                self.assertIn(failed["steps"][0]["failure"], ("connect", "reset"))
                await self.check([hook("policy", url, intercept(policy))], denied, "connect")

    async def test_managed(self):
        # A managed subscription fails closed whatever its policy says.
        for terms in ({"scope": "managed", "disableable": False}, {"disableable": False}):
            with self.subTest(terms=terms):
                crashed = self.official(crash)
                await self.check(
                    [hook("policy", crashed.url, intercept("fail-open", **terms))], True, "rpc_error"
                )

    async def test_one_subscription_of_two_hangs(self):
        # Both are on one backend: each keeps its own deadline and policy.
        policy = self.plain(lambda message: None)
        _, through, [record] = await self.compare(
            hook("policy", policy.url, intercept("fail-open", HANG), intercept("fail-closed", 2 * HANG))
        )
        self.assertEqual(through.permission, Permission.DENY)
        self.assertEqual([step["outcome"] for step in record["steps"]], ["failed_open", "failed_closed"])

    def process(self) -> tuple[subprocess.Popen, str]:
        """Starts an official backend that passes everything as a process of its own."""
        process = subprocess.Popen([sys.executable, backend.__file__], stdout=subprocess.PIPE, text=True)

        def end():
            process.kill()
            process.wait()
            process.stdout.close()

        self.addCleanup(end)
        return process, process.stdout.readline().strip()
