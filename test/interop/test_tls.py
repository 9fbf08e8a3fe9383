"""TLS on both sides of the gateway, with an authority made for the test."""

import os
import pathlib
import tempfile
from unittest import mock

import trustme
from agenthooksprotocol import Permission

from case import GENERIC_CODE, GENERIC_REASON, Case, bare, denials, hook, intercept, tool_before
from test_decisions import allow, deny


class TLS(Case):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="ahp-interop-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        authority = trustme.CA()
        self.roots = self.pem("roots", authority.cert_pem)
        leaf = authority.issue_cert("127.0.0.1", "localhost")
        self.certificate = self.pem("certificate", *leaf.cert_chain_pems)
        self.key = self.pem("key", leaf.private_key_pem)
        self.both = self.pem("both", leaf.private_key_pem, *leaf.cert_chain_pems)

    def pem(self, name: str, *blobs: trustme.Blob) -> str:
        file = self.folder / (name + ".pem")
        file.write_bytes(b"".join(blob.bytes() for blob in blobs))
        return str(file)

    def trust(self):
        """Makes the harness trust the authority."""
        patch = mock.patch.dict(os.environ, {"SSL_CERT_FILE": self.roots})
        patch.start()
        self.addCleanup(patch.stop)

    async def test_listener(self):
        self.trust()
        policy = self.official(deny)
        served = self.gateway(
            hook("policy", policy.url, intercept()), tls={"certFile": self.certificate, "keyFile": self.key}
        )
        self.assertRegex(served.url, "^https://")
        async with self.harness(hook("gateway", served.url, intercept())) as harness:
            for _ in range(5):
                result = await harness.dispatch("tool.before", tool_before())
                self.assertEqual((result.permission, result.diagnostics), (Permission.DENY, []))
        self.assertEqual(len(policy.inbox.all()), 5)

    async def test_listener_with_an_authority_that_the_harness_does_not_trust(self):
        policy = self.official(allow)
        served = self.gateway(
            hook("policy", policy.url, intercept()), tls={"certFile": self.certificate, "keyFile": self.key}
        )
        result = await self.ask(hook("gateway", served.url, intercept()))
        self.assertEqual((result.permission, len(result.diagnostics)), (Permission.DENY, 1))
        self.assertEqual(policy.inbox.all(), [])

    async def test_backend(self):
        policy = self.official(deny, certificate=self.both)
        served = self.gateway(
            hook("policy", policy.url, intercept()), backends={"com.example.policy": {"caFile": self.roots}}
        )
        async with self.harness(hook("gateway", served.url, intercept())) as harness:
            for _ in range(5):
                result = await harness.dispatch("tool.before", tool_before())
                self.assertEqual(denials(result), [("no ☃ “force” pushes", "com.example.force_push")])
        self.assertEqual(len(policy.inbox.all()), 5)

    async def test_discovery_on_both_sides(self):
        # With nothing but ids and addresses, over TLS in front and behind.
        self.trust()
        policy = self.official(deny, certificate=self.both, subscriptions=[intercept("fail-open", timeout=700)])
        served = self.gateway(
            bare("policy", policy.url),
            backends={"com.example.policy": {"caFile": self.roots}},
            tls={"certFile": self.certificate, "keyFile": self.key},
        )
        async with self.harness(bare("gateway", served.url)) as harness:
            self.assertEqual(harness.configuration_diagnostics, [])
            result = await harness.dispatch("tool.before", tool_before())
        self.assertEqual(denials(result), [("no ☃ “force” pushes", "com.example.force_push")])
        self.assertEqual(policy.inbox.methods(), ["hooks/configuration", "hooks/intercept"])
        [record] = served.stop()
        self.assertEqual((record["verdict"], record["denied_by"]), ("deny", "com.example.policy"))

    async def test_backend_with_an_authority_that_the_gateway_does_not_trust(self):
        policy = self.official(allow, certificate=self.both)
        served = self.gateway(hook("policy", policy.url, intercept()))
        result = await self.ask(hook("gateway", served.url, intercept()))
        self.assertEqual(denials(result), [(GENERIC_REASON, GENERIC_CODE)])
        [record] = served.stop()
        self.assertEqual(record["steps"][0]["failure"], "tls")
        self.assertEqual(policy.inbox.all(), [])
