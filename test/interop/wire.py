"""The schemas that every message of these tests is held against.

For draft these are the official SDK's own. For 0.1, which the SDK does not
speak, they are the gateway's published ones.
"""

import json
import pathlib

import jsonschema
import referencing
from agenthooksprotocol.runtime import ProtocolError, Validator

DRAFT = Validator()
SCHEMAS_V01 = pathlib.Path(__file__).parents[2] / "ahp" / "schema" / "0.1"

_total = 0


def _v01():
    schemas = {path.name: json.loads(path.read_text()) for path in SCHEMAS_V01.glob("*.schema.json")}
    registry = referencing.Registry().with_resources(
        (schema["$id"], referencing.Resource.from_contents(schema)) for schema in schemas.values()
    )
    return {
        name.removesuffix(".schema.json"): jsonschema.Draft202012Validator(
            schema, registry=registry, format_checker=jsonschema.FormatChecker()
        )
        for name, schema in schemas.items()
    }


V01 = _v01()

KINDS = {
    "hooks/intercept": "intercept-request",
    "hooks/observe": "observe-notification",
    "hooks/configuration": "configuration-request",
}
ANSWERS = {"hooks/configuration": "configuration-response", "hooks/capabilities": "capabilities-response"}


def violation(kind: str, message: dict, version: str) -> str | None:
    """Says how a message breaks the schema of its kind, or None if it does not."""
    global _total
    _total += 1
    try:
        if version == "draft":
            DRAFT.validate(kind, message)
        else:
            V01[kind].validate(message)
    except (ProtocolError, jsonschema.ValidationError) as broken:
        return f"{kind} of {version}: {broken}\n{json.dumps(message)}"
    return None


def request_violation(message: dict) -> str | None:
    """Checks a message to a backend, or from a harness."""
    kind = KINDS.get(message.get("method"))
    if kind is None:
        return f"unknown method: {json.dumps(message)}"
    return violation(kind, message, message["params"]["protocolVersion"])


def answer_violation(request: dict, status: int, media_type: str, body: bytes) -> str | None:
    """Checks the gateway's answer to a message that it admitted."""
    if request["method"] == "hooks/observe":
        return None if status in (202, 204) and body == b"" else f"observe answered {status} {body!r}"
    if status != 200 or media_type.partition(";")[0] != "application/json":
        return f"intercept answered {status} {media_type}: {body!r}"
    answer = json.loads(body)
    if answer.get("id") != request["id"]:
        return f"intercept {request['id']} answered with id {answer.get('id')}"
    version = request["params"]["protocolVersion"]
    if "error" in answer and version == "draft":
        return violation("json-rpc-message", answer, version)
    return violation(ANSWERS.get(request["method"], "intercept-response"), answer, version)


def validated() -> int:
    """How many messages were held against a schema so far."""
    return _total
