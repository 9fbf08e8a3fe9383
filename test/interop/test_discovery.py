"""Backends that list no subscriptions: the gateway asks them, as a harness does."""

import uuid

from agenthooksprotocol import Permission, state

from case import (
    GENERIC_CODE,
    GENERIC_REASON,
    Case,
    bare,
    denials,
    hook,
    intercept,
    observe,
    outcome,
    tool_after,
    tool_before,
)
from test_decisions import allow, crash, deny


class Discovery(Case):
    async def dispatch(self, *hooks: dict, ids: list[str]):
        """One tool.before and one tool.after from a new harness with these hooks."""
        async with self.harness(*hooks) as harness:
            self.assertEqual(harness.configuration_diagnostics, [])
            before = await harness.dispatch(
                "tool.before",
                tool_before(native={"anything": 1}),
                initial_state=state.initial(Permission.NONE),
                event_id=ids[0],
            )
            await harness.dispatch("tool.after", self.after, event_id=ids[1])
            await harness.wait_observations()
        return before

    def take(self):
        """What each backend got since the last take: whether it was asked for its
        subscriptions first, and the other messages."""
        taken = []
        for inbox in self.inboxes:
            messages = inbox.take()
            asked = [message["method"] == "hooks/configuration" for message in messages]
            self.assertNotIn(True, asked[1:])
            rest = messages[1:] if asked[:1] == [True] else messages
            taken.append((asked[:1] == [True], sorted(rest, key=lambda message: message["method"])))
        return taken

    async def same(self, backends: dict[str, tuple], listable=True):
        """Checks that it makes no difference whether a harness has the backends
        or the gateway registered and, where their subscriptions are listable,
        whether they are listed or advertised. Returns the harness's results."""
        self.after = tool_after()
        ids = [uuid.uuid4().hex, uuid.uuid4().hex]
        listed, unlisted = [], []
        for name, (callback, *subscriptions) in backends.items():
            url = self.official(callback, subscriptions=subscriptions).url
            listed.append(hook(name, url, *subscriptions))
            unlisted.append(bare(name, url))
        results, taken = [], []
        for hooks in [unlisted, listed] if listable else [unlisted]:
            results.append(await self.dispatch(*hooks, ids=ids))
            taken.append(self.take())
            served = self.gateway(*hooks)
            results.append(await self.dispatch(bare("gateway", served.url), ids=ids))
            served.stop()
            taken.append(self.take())
            for backend in taken[-2:]:
                self.assertEqual([asked for asked, _ in backend], [hooks is unlisted] * len(backends))
        for result, messages in zip(results, taken, strict=True):
            self.assertEqual(outcome(result), outcome(results[0]))
            self.assertEqual([rest for _, rest in messages], [rest for _, rest in taken[0]])
        return results

    async def test_denied(self):
        [*_, through] = await self.same({"policy": (deny, intercept())})
        self.assertEqual(denials(through), [("no ☃ “force” pushes", "com.example.force_push")])

    async def test_passed(self):
        [*_, through] = await self.same({"policy": (allow, intercept("fail-open"))})
        self.assertEqual((through.permission, through.diagnostics), (Permission.NONE, []))

    async def test_failed_closed(self):
        [*_, through] = await self.same({"policy": (crash, intercept("fail-closed")), "next": (allow, intercept())})
        self.assertEqual(denials(through), [(GENERIC_REASON, GENERIC_CODE)])

    async def test_failed_open(self):
        [*_, through] = await self.same({"policy": (crash, intercept("fail-open")), "next": (deny, intercept())})
        self.assertEqual(denials(through), [("no ☃ “force” pushes", "com.example.force_push")])

    async def test_many_terms(self):
        # Families are cut to what the host and the gateway can do, an observer
        # sees no more than it selects, and the order is the document's.
        await self.same(
            {
                "watcher": (allow, observe("*"), {**observe("session.*"), "includeNative": True}),
                "first": (
                    allow,
                    intercept(events=["tool.before"], includeNative=True, content={"default": "omit", "text": "body"}),
                ),
                "second": (deny, intercept("fail-open", scope="managed", disableable=False), observe("tool.after")),
                "third": (allow, intercept(filters={"toolKinds": ["shell"], "paths": ["/src/*"]})),
            },
            listable=False,  # a harness refuses a document that asks for more than its host has
        )

    async def test_family_that_nobody_has(self):
        policy = self.official(deny, subscriptions=[intercept(events=["acme.*", "tool.before"]), observe("acme.*")])
        served = self.gateway(bare("policy", policy.url))
        async with self.harness(bare("gateway", served.url)) as harness:
            result = await harness.dispatch("tool.before", tool_before())
        self.assertEqual(result.permission, Permission.DENY)

    async def test_backend_that_cannot_be_asked(self):
        # A harness skips it. The gateway does not start without it, unless it is
        # told to skip it too.
        mute, policy = self.official(deny), self.official(deny)
        hooks = [bare("mute", mute.url), hook("policy", policy.url, intercept())]
        async with self.harness(*hooks) as harness:
            self.assertEqual(
                harness.configuration_diagnostics,
                [{"backend": "com.example.mute", "reason": "configuration_unavailable"}],
            )
        with self.assertRaisesRegex(AssertionError, "backend com.example.mute: rpc_error: JSON-RPC error -32601"):
            self.gateway(*hooks)
        served = self.gateway(*hooks, discovery={"onFailure": "skip"})
        async with self.harness(bare("gateway", served.url)) as harness:
            result = await harness.dispatch("tool.before", tool_before())
        self.assertEqual(len(denials(result)), 1)
        self.assertEqual(mute.inbox.methods(), ["hooks/configuration"] * 3)

    async def test_upload_that_nobody_has_permitted(self):
        # A harness whose host does not permit it skips the backend. The gateway
        # goes on without the upload: a policy that holds is worth more.
        upload = {"endpoint": "https://uploads.example.com/", "timeoutMs": 1000, "maxBytes": 1024}
        policy = self.official(deny, subscriptions=[intercept(content={"default": "body"}, upload=upload)])
        served = self.gateway(bare("policy", policy.url))
        async with self.harness(bare("gateway", served.url)) as harness:
            self.assertEqual(harness.configuration_diagnostics, [])
            result = await harness.dispatch("tool.before", tool_before())
        self.assertEqual(result.permission, Permission.DENY)
