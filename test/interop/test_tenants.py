"""Credentials of harnesses at the gateway, and of the gateway at backends."""

import hashlib
import os
from unittest import mock

from agenthooksprotocol import Permission
from agenthooksprotocol.diagnostics import Code

from case import Case, denials, hook, intercept, registration
from test_decisions import allow, deny

KEYS = {"acme": "acme-key-0123456789abcdef", "globex": "globex-key-0123456789abcdef"}
SECRETS = {
    "ACME_TOKEN": "acme-backend-token",
    "ACME_HEADER": "acme-backend-header",
    "OTHER": "of the gateway",
}


def tenant(name: str, *hooks: dict, **more) -> dict:
    return {
        "id": name,
        "keys": [{"sha256": hashlib.sha256(KEYS[name].encode()).hexdigest()}],
        "registration": registration(*hooks),
        **more,
    }


def with_header(url: str, *subscriptions: dict) -> dict:
    """The gateway's hook with the credential as a header from the environment."""
    headers = {"Authorization": {"valueEnv": "HARNESS_AUTHORIZATION"}}
    return hook("gateway", url, *subscriptions, transport={"headers": headers})


def with_token(url: str, *subscriptions: dict) -> dict:
    """The gateway's hook with the credential as a bearer token from the environment."""
    authentication = {"type": "bearer", "tokenEnv": "HARNESS_TOKEN"}
    return hook("gateway", url, *subscriptions, authentication=authentication)


class Tenants(Case):
    def setUp(self):
        super().setUp()
        self.acme, self.globex = self.official(deny), self.official(allow)
        self.served = self.gateway(
            tenants=[
                tenant("acme", hook("policy", self.acme.url, intercept())),
                tenant("globex", hook("policy", self.globex.url, intercept())),
            ]
        )

    def credential(self, key: str):
        values = {"HARNESS_AUTHORIZATION": "Bearer " + key, "HARNESS_TOKEN": key}
        patch = mock.patch.dict(os.environ, values)
        patch.start()
        self.addCleanup(patch.stop)

    async def test_right_key(self):
        for name, asked, permission in (
            ("acme", self.acme, Permission.DENY),
            ("globex", self.globex, Permission.NONE),
        ):
            for credentials in (with_header, with_token):
                for url in (self.served.url, self.served.url_of(name)):
                    with self.subTest(tenant=name, credentials=credentials.__name__, url=url):
                        self.credential(KEYS[name])
                        result = await self.ask(credentials(url, intercept()))
                        self.assertEqual((result.permission, result.diagnostics), (permission, []))
                        [_] = asked.inbox.take()
        self.served.stop()
        self.assertEqual((self.acme.inbox.take(), self.globex.inbox.take()), ([], []))

    async def test_the_harness_key_goes_no_further(self):
        self.credential(KEYS["acme"])
        await self.ask(with_token(self.served.url, intercept()))
        [seen] = self.acme.inbox.all()
        self.assertNotIn("authorization", seen.headers)

    async def test_wrong_key(self):
        # The harness applies its own policy: the gateway is a failed backend to it.
        for policy, permission in (("fail-closed", Permission.DENY), ("fail-open", Permission.NONE)):
            for credentials in (with_header, with_token):
                with self.subTest(policy=policy, credentials=credentials.__name__):
                    self.credential("wrong-key-0123456789abcdef")
                    result = await self.ask(credentials(self.served.url, intercept(policy)))
                    self.assertEqual((result.permission, denials(result)), (permission, []))
                    [diagnostic] = result.diagnostics
                    self.assertEqual(diagnostic["code"], Code.TRANSPORT)
        self.check_refused(401)

    async def test_no_key(self):
        result = await self.ask(hook("gateway", self.served.url, intercept()))
        self.assertEqual((result.permission, denials(result)), (Permission.DENY, []))
        self.check_refused(401)

    async def test_key_of_another_tenant(self):
        self.credential(KEYS["globex"])
        result = await self.ask(with_token(self.served.url_of("acme"), intercept()))
        self.assertEqual((result.permission, denials(result)), (Permission.DENY, []))
        self.check_refused(403)

    def check_refused(self, status: int):
        self.assertEqual({answer.status_code for _, answer in self.answers}, {status})
        if status == 401:
            for _, answer in self.answers:
                self.assertRegex(answer.headers["www-authenticate"], "^Bearer ")
        self.assertEqual(self.served.stop(), [])
        self.assertEqual((self.acme.inbox.all(), self.globex.inbox.all()), ([], []))


class BackendCredentials(Case):
    async def test_are_sent(self):
        bearer, header = self.official(allow), self.official(allow)
        served = self.gateway(
            hook(
                "bearer", bearer.url, intercept(), authentication={"type": "bearer", "tokenEnv": "ACME_TOKEN"}
            ),
            hook(
                "header",
                header.url,
                intercept(),
                transport={"headers": {"X-Policy-Key": {"valueEnv": "ACME_HEADER"}, "X-Policy-Team": "red"}},
            ),
            environment=SECRETS,
        )
        result = await self.ask(hook("gateway", served.url, intercept()))
        self.assertEqual((result.permission, denials(result)), (Permission.NONE, []))
        [seen] = bearer.inbox.all()
        self.assertEqual(seen.headers["authorization"], "Bearer " + SECRETS["ACME_TOKEN"])
        [seen] = header.inbox.all()
        self.assertEqual(seen.headers["x-policy-key"], SECRETS["ACME_HEADER"])
        self.assertEqual(seen.headers["x-policy-team"], "red")
        self.assertNotIn("authorization", seen.headers)

    async def test_are_only_those_granted(self):
        policy = self.official(allow)
        authentication = {"type": "bearer", "tokenEnv": "OTHER"}
        acme = tenant(
            "acme",
            hook("policy", policy.url, intercept(), authentication=authentication),
            secrets={"envPrefix": "ACME_"},
        )
        with self.assertRaisesRegex(AssertionError, "tokenEnv: .* is not granted here"):
            self.gateway(tenants=[acme], environment=SECRETS)

    async def test_that_are_missing_fail_the_call(self):
        policy = self.official(allow)
        served = self.gateway(
            hook("policy", policy.url, intercept(), authentication={"type": "bearer", "tokenEnv": "ABSENT"})
        )
        result = await self.ask(hook("gateway", served.url, intercept()))
        self.assertEqual(result.permission, Permission.DENY)
        [record] = served.stop()
        self.assertEqual(record["steps"][0]["failure"], "credential")
        self.assertEqual(policy.inbox.all(), [])
