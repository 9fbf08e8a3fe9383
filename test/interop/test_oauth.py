"""OAuth at the gateway: a harness that has no credential finds out where to get
one from the gateway's refusal, and comes back with an access token."""

import asyncio
import base64
import http.server
import json
import re
import threading
import time
import urllib.request
import uuid

from agenthooksprotocol import Hooks, Permission, state
from agenthooksprotocol.auth import BearerCredential
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from case import HARNESS, SOURCE, Case, hook, host, intercept, registration, tool_before
from test_decisions import deny

RESOURCE = "https://gateway.example/hooks"


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def get(url: str) -> dict:
    with urllib.request.urlopen(url, timeout=5) as answer:
        return json.load(answer)


class Issuer(http.server.ThreadingHTTPServer):
    """An authorization server whose keys are to be had over HTTP, and its tokens here."""

    def __init__(self):
        self.key = Ed25519PrivateKey.generate()
        super().__init__(("127.0.0.1", 0), Documents)
        self.url = f"http://127.0.0.1:{self.server_port}"
        public = base64url(self.key.public_key().public_bytes_raw())
        self.documents = {
            "/.well-known/openid-configuration": {"issuer": self.url, "jwks_uri": self.url + "/keys"},
            "/keys": {"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "1", "x": public}]},
        }
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def token(self, resource: str, **claims) -> str:
        now = int(time.time())
        header = {"alg": "EdDSA", "kid": "1", "typ": "at+jwt"}
        payload = {"iss": self.url, "aud": resource, "iat": now, "exp": now + 300, **claims}
        signed = ".".join(base64url(json.dumps(part).encode()) for part in (header, payload))
        return signed + "." + base64url(self.key.sign(signed.encode()))

    def close(self):
        self.shutdown()
        self.server_close()


class Documents(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        document = self.server.documents.get(self.path)
        self.send_response(200 if document else 404)
        self.end_headers()
        self.wfile.write(json.dumps(document).encode())

    def log_message(self, *_):
        pass


class Discovery:
    """A harness's provider that begins with nothing and follows the challenge."""

    def __init__(self, test: Case, issuer: Issuer, base: str, **claims):
        self.test, self.issuer, self.base, self.claims = test, issuer, base, claims
        self.challenges = []

    async def credential(self, context):
        return None

    async def challenge(self, context, challenge):
        self.challenges.append(challenge.headers["www-authenticate"])
        if not challenge.retry_allowed:
            return None
        [url] = re.findall('resource_metadata="([^"]*)"', self.challenges[-1])
        # What ends TLS in front of the gateway would be at the resource's origin.
        local = url.replace("https://gateway.example", self.base)
        metadata = await asyncio.to_thread(get, local)
        # RFC 9728, 3.3: the metadata is about what the harness has asked for.
        asked = challenge.destination.replace(self.base, "https://gateway.example")
        self.test.assertEqual(metadata["resource"], asked)
        self.test.assertEqual(metadata["authorization_servers"], [self.issuer.url])
        return BearerCredential(self.issuer.token(metadata["resource"], **self.claims))


class OAuth(Case):
    def setUp(self):
        super().setUp()
        self.issuer = Issuer()
        self.addCleanup(self.issuer.close)
        self.policy = self.official(deny)
        self.served = self.gateway(
            auth={"resource": RESOURCE, "issuers": [{"issuer": self.issuer.url, "tenantClaim": "tenant"}]},
            tenants=[{"id": "acme", "registration": registration(hook("policy", self.policy.url, intercept()))}],
        )

    async def dispatch(self, url: str, **claims):
        provider = Discovery(self, self.issuer, self.served.url.removesuffix("/hooks"), **claims)
        async with Hooks(
            registration(hook("gateway", url, intercept())),
            source=SOURCE,
            harness=HARNESS,
            capabilities=host(),
            auth_provider=provider,
        ) as harness:
            result = await harness.dispatch(
                "tool.before", tool_before(), initial_state=state.initial(Permission.NONE), event_id=uuid.uuid4().hex
            )
        return provider, result

    async def test_a_harness_finds_its_way(self):
        for url in (self.served.url, self.served.url_of("acme")):
            with self.subTest(url=url):
                provider, result = await self.dispatch(url, tenant="acme")
                self.assertEqual((result.permission, result.diagnostics), (Permission.DENY, []))
                [challenge] = provider.challenges
                self.assertNotIn("error=", challenge)
                [_] = self.policy.inbox.take()

    async def test_a_token_of_nobody(self):
        provider, result = await self.dispatch(self.served.url, tenant="globex")
        self.assertEqual((result.permission, len(result.diagnostics)), (Permission.DENY, 1))
        self.assertEqual(["error=" in challenge for challenge in provider.challenges], [False, True])
        self.assertEqual(self.policy.inbox.all(), [])
