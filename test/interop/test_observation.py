"""What observers are told of draft events, directly and through the gateway."""

import uuid

from agenthooksprotocol import Permission
from agenthooksprotocol.server import hooks

from case import Case, hook, intercept, observe, tool_after, tool_before
from test_decisions import allow, crash, deny


class Observation(Case):
    async def test_of_a_passed_event(self):
        policy, watcher = self.official(allow), self.official()
        await self.compare(
            hook("watcher", watcher.url, observe("tool.before")), hook("policy", policy.url, intercept())
        )
        self.assertEqual([got.method for got in policy.inbox.seen()], ["hooks/intercept"] * 2)
        self.assertEqual([got.method for got in watcher.inbox.seen()], ["hooks/observe"] * 2)

    async def test_of_a_denied_event(self):
        first, denying, uncalled, watcher = (self.official(each) for each in (allow, deny, allow, None))
        await self.compare(
            hook("first", first.url, intercept()),
            hook("denying", denying.url, intercept()),
            hook("uncalled", uncalled.url, intercept()),
            hook("watcher", watcher.url, observe("tool.*")),
        )
        self.assertEqual([got.method for got in uncalled.inbox.seen()], ["hooks/observe"] * 2)

    async def test_of_an_event_that_failed_closed(self):
        crashed, uncalled, watcher = (self.official(each) for each in (crash, allow, None))
        await self.compare(
            hook("crashed", crashed.url, intercept()),
            hook("uncalled", uncalled.url, intercept("fail-open")),
            hook("watcher", watcher.url, observe("*")),
        )
        self.assertEqual([got.method for got in uncalled.inbox.seen()], ["hooks/observe"] * 2)

    async def test_of_one_backend_with_both_modes(self):
        policy = self.official(deny)
        await self.compare(hook("policy", policy.url, intercept(), observe("tool.before")))
        self.assertEqual(
            sorted(got.method for got in policy.inbox.seen()), ["hooks/intercept"] * 2 + ["hooks/observe"] * 2
        )

    async def test_comes_after_settlement(self):
        watcher = self.official()
        early = []

        def policy(context):
            early.extend(watcher.inbox.all())
            return hooks.ToolBeforeReply()

        served = self.gateway(
            hook("watcher", watcher.url, observe("tool.before")),
            hook("first", self.official(policy).url, intercept()),
            hook("last", self.official(policy).url, intercept()),
        )
        await self.ask(hook("gateway", served.url, intercept()))
        self.assertEqual(early, [])
        self.assertEqual(len(watcher.inbox.wait(1)), 1)

    async def test_is_not_repeated_for_an_event_that_the_gateway_decided(self):
        # A harness that subscribes the gateway to both modes tells it of the
        # event once more, after the decision.
        policy, watcher = self.official(allow), self.official()
        served = self.gateway(
            hook("policy", policy.url, intercept()), hook("watcher", watcher.url, observe("tool.before"))
        )
        result = await self.ask(hook("gateway", served.url, intercept(), observe("tool.before")))
        self.assertEqual(result.diagnostics, [])
        served.stop()
        self.assertEqual(
            [request["method"] for request, _ in self.answers], ["hooks/intercept", "hooks/observe"]
        )
        self.assertEqual(policy.inbox.methods(), ["hooks/intercept"])
        self.assertEqual(watcher.inbox.methods(), ["hooks/observe"])

    async def test_of_tool_after(self):
        watcher, uninterested = self.official(), self.official(allow)
        served = self.gateway(
            hook("watcher", watcher.url, observe("tool.after")),
            hook("uninterested", uninterested.url, intercept()),
        )
        payload = tool_after()
        async with self.harness(hook("gateway", served.url, observe("tool.*"))) as harness:
            result = await harness.dispatch("tool.after", payload)
        self.assertEqual((result.permission, result.diagnostics), (Permission.NONE, []))
        [seen] = watcher.inbox.wait(1)
        self.assertEqual((seen.method, seen.event["type"]), ("hooks/observe", "tool.after"))
        for member, value in payload.items():
            self.assertEqual(seen.event[member], value, member)
        served.stop()
        self.assertEqual(uninterested.inbox.methods(), [])

    async def test_selects_content_as_the_harness_does(self):
        selections = [
            {"default": "body"},
            {"default": "metadata"},
            {"default": "omit"},
            {"default": "omit", "tool-result": "body"},
        ]
        watchers = [self.official() for _ in selections]
        chain = [
            hook(f"watcher-{i}", watcher.url, {**observe("tool.after"), "content": selection})
            for i, (watcher, selection) in enumerate(zip(watchers, selections))
        ]
        payload, event_id = tool_after(), uuid.uuid4().hex
        async with self.harness(*chain) as harness:
            await harness.dispatch("tool.after", payload, event_id=event_id)
        direct = [watcher.inbox.take() for watcher in watchers]
        served = self.gateway(*chain)
        async with self.harness(hook("gateway", served.url, observe("tool.after"))) as harness:
            await harness.dispatch("tool.after", payload, event_id=event_id)
        served.stop()
        for watcher, selection, want in zip(watchers, selections, direct):
            with self.subTest(selection=selection):
                self.assertEqual(watcher.inbox.take(), want)

    async def test_of_a_slow_observer_does_not_delay_the_decision(self):
        hanging, policy = self.plain(lambda message: None), self.official(deny)
        served = self.gateway(
            hook("hanging", hanging.url, observe("tool.before")),
            hook("policy", policy.url, intercept()),
            limits={"drainTimeout": "500ms"},
        )
        result = await self.ask(hook("gateway", served.url, intercept()))
        self.assertEqual((result.permission, result.diagnostics), (Permission.DENY, []))
        hanging.inbox.wait(1)

    async def test_of_many_events(self):
        watcher, policy = self.official(), self.official(allow)
        served = self.gateway(
            hook("watcher", watcher.url, observe("*")), hook("policy", policy.url, intercept())
        )
        ids = [uuid.uuid4().hex for _ in range(20)]
        async with self.harness(hook("gateway", served.url, intercept(), observe("tool.after"))) as harness:
            for event_id in ids:
                await harness.dispatch("tool.before", tool_before(), event_id=event_id)
                await harness.dispatch("tool.after", tool_after(), event_id=event_id + "-after")
        served.stop()
        told = {got.event["id"] for got in watcher.inbox.all()}
        self.assertEqual(told, {*ids, *(event_id + "-after" for event_id in ids)})
        self.assertEqual(len(watcher.inbox.all()), 2 * len(ids))
