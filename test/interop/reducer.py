"""Compares how the official harness settles chains with how package decision does.

    reducer.py BINARY [--count N] [--seed S] [--first N] [--event NAME] [--show N]

BINARY is the test binary of decision (go test -c ./decision). For each seeded
chain the official harness calls the backends directly, through transports of
this file; the same chain is reduced by BINARY, which also composes one answer;
then the official harness is answered with that alone. Compared are what every
backend was sent, whose answers were accepted, and the settled states.
"""

import argparse
import collections
import copy
import itertools
import json
import random
import subprocess
import sys

import anyio
from agenthooksprotocol import _grants as grants
from agenthooksprotocol import event as events
from agenthooksprotocol.runtime import Validator

from agenthooksprotocol import Hooks

DENY = "Required policy backend unavailable."

VOCABULARY = {
    "session.start": "inject message",
    "config.change.before": "deny message",
    "turn.start": "deny modify:prompt inject flow:stop message",
    "turn.finish.before": "modify:response flow:stop flow:continue message",
    "model.request.before": "deny modify:request inject return flow:stop message",
    "model.response.after": "modify:response flow:stop message",
    "model.switch.before": "deny flow:stop message",
    "tool.before": "deny allow ask modify:input inject flow:stop return message",
    "tool.after": "modify:output inject flow:stop flow:continue message",
    "tool.permission.request": "allow deny modify:input flow:stop message",
    "tool.batch.after": "flow:stop inject message",
    "context.compact.before": "deny modify:instructions return inject message",
    "context.compact.after": "inject modify:summary message",
    "task.change.before": "deny message",
    "user.elicitation.request": "deny return message",
    "user.elicitation.result": "modify:content message",
    "user.message.inbound": "deny modify:prompt message",
    "user.message.outbound": "deny modify:content message",
    "workspace.change.before": "deny modify:workspace message",
}

PLACES = {
    "turn.start": ("items",),
    "turn.finish.before": ("items",),
    "model.request.before": ("items",),
    "model.response.after": ("items",),
    "tool.after": ("items",),
    "tool.before": ("tool", "input"),
    "tool.permission.request": ("tool", "input"),
    "context.compact.before": ("instructions",),
    "context.compact.after": ("summary",),
    "workspace.change.before": ("workspace", "change"),
}


def host_capabilities():
    """Everything that a host can declare."""
    declared = {}
    for name in VOCABULARY:
        prefix = "".join(word.capitalize() for word in name.split("."))
        intercept = getattr(grants, prefix + "Intercept")
        granted = {}
        for field, annotation in intercept.__annotations__.items():
            if field.startswith("modify_"):
                granted[field] = grants.Modify.REPLACE_AND_MERGE
            elif field == "flow":
                granted[field] = (
                    grants.FlowContinue(remaining_continuations=9, continuation_count=9, max_continuations=9, include_stop=True)
                    if "FlowContinue" in annotation
                    else grants.FlowStop(max_continuations=9)
                )
            elif field == "inject_context":
                granted[field] = grants.InjectContext(deliver_at=(grants.Delivery.NEXT_TURN, grants.Delivery.NOW))
            elif field == "elicitation":
                granted[field] = grants.Elicitation.FORM_AND_URL
            else:
                granted[field] = True
        declared[name.replace(".", "_")] = getattr(grants, prefix + "Capabilities")(
            intercept=intercept(**granted), observe=True
        )
    return grants.HostCapabilities(**declared)


class Generator:
    """Makes up chains. Message and part ids are fresh for each of them."""

    def __init__(self, seed, number):
        self.r = random.Random(f"{seed}/{number}")
        self.prefix = f"{number}-"

    def one(self, n):
        return self.r.randrange(n) == 0

    def pick(self, *options):
        return copy.deepcopy(self.r.choice(options))

    def chain(self, number, kind=None):
        kind = kind or list(VOCABULARY)[number % len(VOCABULARY)]
        caps = self.capabilities(kind)
        payload, asked = self.payload(kind)
        state = self.state(kind)
        turns = []
        for _ in range(1 + self.r.randrange(5)):
            effects = [self.effect(kind, payload, caps) for _ in range(self.r.randrange(4))]
            turns.append(
                {
                    "effects": effects,
                    "hide": self.pick("body", "body", "metadata", "omit"),
                    "closed": self.one(4),
                }
            )
        return {"kind": kind, "capabilities": caps, "payload": payload, "asked": asked, "state": state, "turns": turns}

    def capabilities(self, kind):
        caps = {}
        names, flows = [], []
        for word in VOCABULARY[kind].split():
            if self.one(6):
                continue
            name, _, of = word.partition(":")
            if name not in names:
                names.append(name)
            if name == "modify":
                caps["modify"] = {
                    of: self.pick(
                        {"replace": True, "merge": True},
                        {"replace": True, "merge": False},
                        {"replace": False, "merge": True},
                    )
                }
            if name == "flow":
                flows.append(of)
                caps["flow"] = {"operations": list(flows)}
                if "continue" in flows:
                    caps["flow"].update(remainingContinuations=self.pick(0, 1, 2, 3), continuationCount=self.pick(0, 1))
                    # A budget beside stop alone makes the official harness
                    # refuse to call any backend after the first.
                    if self.one(4):
                        caps["flow"]["maxContinuations"] = self.pick(0, 3)
            if name == "inject":
                caps["inject"] = {"context": {"append": True, "deliverAt": self.pick(["now"], ["next_turn"], ["now", "next_turn"])}}
        caps["effects"] = names
        if not self.one(6):
            caps["elicitation"] = self.pick({"form": {}}, {"form": {}, "url": {}}, {"url": {}})
        return caps

    def state(self, kind):
        state = {"permission": self.pick("none", "none", "allow", "allow", "ask"), "candidate": None}
        if self.one(25):
            state["permission"] = "deny"
        if self.one(3):
            state["candidate"] = {"value": self.returned(kind), "provenance": {"by": "host"}}
        if self.one(2):
            state["flow"] = self.pick("none", "none", "continue", "stop") if self.one(5) else "none"
        if self.one(3):
            state["instructions"] = self.pick([], ["earlier"])
        if self.one(3):
            state["injections"] = self.pick([], [self.inject()])
        return state

    def payload(self, kind):
        asked = None
        call = {"call": {"id": "c"}, "path": "native"}
        tool = {"tool": {"name": "t", "origin": "native", "input": self.input()}}
        model = {"model": {"id": "m", "provider": "p"}, "attempt": {"id": "a", "number": 1}}
        executed = {"execution": {"status": "executed"}}
        turn = {"turn": {"id": "t"}}
        session = {"session": {"id": "s"}}
        payload = {
            "session.start": {**session, "trigger": "startup", "permissionMode": "default", "items": []},
            "config.change.before": {"change": {"source": "s", "scope": "user", "settings": ["x"], "summary": "s"}},
            "turn.start": {**turn, "trigger": "user", "items": self.messages(True)},
            "turn.finish.before": {**turn, "outcome": "completed", "continuationCount": 0, "items": self.messages(True)},
            "model.request.before": {**model, "params": {"t": 0.5}, "items": self.messages(True)},
            "model.response.after": {**model, **executed, "items": self.messages(True), "finishReason": "stop"},
            "model.switch.before": {"current": model["model"], "proposed": {"id": "n", "provider": "p"}, "reason": "r"},
            "tool.before": {**call, **tool},
            "tool.after": {**call, **tool, **executed, "outcome": "ok", "items": self.messages(True)},
            "tool.permission.request": {**call, **tool, "suggestions": [], "sandboxBypass": False},
            "tool.batch.after": {"batch": {"id": "b"}, "calls": [{**call, **tool, **executed, "outcome": "ok"}]},
            "context.compact.before": {"trigger": "auto", "items": []},
            "context.compact.after": {"summary": self.texts(self.one(8)), "removed": [], **executed},
            "task.change.before": {"task": {"id": "t", "operation": "create", "change": {"x": 1}}},
            "workspace.change.before": {"workspace": {"kind": "cwd", "change": self.workspace()}},
            "user.message.inbound": {"message": {"channel": "c", "sender": "s", "messages": self.messages(True, "user")}},
            "user.message.outbound": {"message": {"channel": "c", "messages": self.messages(True, "assistant")}},
        }.get(kind, {})
        if kind == "context.compact.before" and not self.one(6):
            payload["instructions"] = self.texts(self.one(8))
        if kind.startswith("user.elicitation"):
            question, mode = self.question()
            text = self.text(question)
            if kind.endswith("request"):
                if self.one(10):
                    text = {**text, "selection": "metadata"}
                    del text["text"]
                payload = {"elicitation": {"server": "s", "mode": mode, "request": text}}
            else:
                result = self.elicit_result()
                if mode == "url":
                    result.pop("content", None)
                payload = {
                    "elicitation": {"server": "s", "mode": mode, "action": result["action"], "result": self.text(result)},
                }
                if not self.one(8):
                    asked = {"server": "s", "mode": mode, "request": text}
        return copy.deepcopy(payload), asked

    def text(self, value):
        text = json.dumps(value) if self.one(2) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return {"id": self.prefix + "q", "kind": "text", "mediaType": "text/plain", "selection": "body", "text": text}

    def question(self):
        if self.one(5):
            return {"mode": "url", "elicitationId": "1", "message": "?", "url": "https://example.com/x"}, "url"
        fields = {
            "n": {"type": self.pick("integer", "number"), "minimum": 1},
            "ok": {"type": "boolean"},
            "who": {"type": "string", "maxLength": 3},
            "mail": {"type": "string", "format": self.pick("email", "uri", "date", "date-time")},
            "one": self.pick(
                {"type": "string", "enum": ["a", "b"]},
                {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]},
                {"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]},
            ),
            "some": self.pick(
                {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1},
                {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}, "maxItems": 1},
            ),
        }
        chosen = {name: field for name, field in fields.items() if self.one(2)}
        form = {"type": "object", "properties": chosen}
        if self.one(3) and chosen:
            form["required"] = [self.r.choice(list(chosen))]
        return {"message": "?", "requestedSchema": form}, "form"

    def elicit_result(self):
        result = {"action": self.pick("accept", "accept", "accept", "accept", "decline", "cancel")}
        # Content without an accept makes the official harness refuse to send
        # the event to anybody.
        if result["action"] == "accept" and not self.one(6):
            result["content"] = self.answers()
        return result

    def answers(self):
        every = {
            "n": self.pick(1, 2, 2.0, 1.5, 0),
            "ok": self.pick(True, False),
            "who": self.pick("a", 'é"', "long"),
            "mail": self.pick("a@b", "https://x/", "2024-02-30", "2024-02-29", "2024-02-29T10:00:00Z", "no"),
            "one": self.pick("a", "b", "c"),
            "some": self.pick([], ["a"], ["a", "b"], ["c"]),
            "extra": self.pick("x", 3),
        }
        return {name: value for name, value in every.items() if self.one(3)}

    def value(self, depth):
        if depth and self.one(4):
            return self.pick([self.value(depth - 1)], {"k": self.value(depth - 1)})
        return self.pick(1, 1.0, 2, 2.5, True, False, None, "x", "é\n", 12345678901234567890, 1e22, 0, -0.0)

    def input(self):
        return {self.pick("a", "b", "c"): self.value(2) for _ in range(self.r.randrange(3))}

    def messages(self, orderly, role=None):
        out = []
        for i in range(self.r.randrange(3)):
            n = i if orderly else self.r.randrange(3)
            of = role or ("user", "assistant", "tool")[n]
            if not orderly and self.one(12):
                of = "system"
            out.append({"id": f"{self.prefix}m{n}", "role": of, "parts": self.parts(n, orderly)})
        return out

    def parts(self, owner, orderly):
        out = []
        for i in range(self.r.randrange(3)):
            if not orderly and self.one(20):
                owner = 7
            ident = f"{self.prefix}p{owner}{i}"
            out.append(
                self.pick(
                    {"id": ident, "kind": "attachment", "mediaType": "image/png", "selection": "body", "body": {"ref": "r"}},
                    {"id": ident, "kind": "text", "mediaType": "text/plain", "selection": "metadata", "size": 3},
                    {"id": ident, "kind": "text", "mediaType": "text/plain", "selection": "body", "gap": {"reason": "g"}},
                    *({"id": ident, "kind": "text", "mediaType": "text/plain", "selection": "body", "text": t} for t in ("x", "y", "", "x")),
                )
            )
        return out

    def texts(self, hidden):
        out = []
        for _ in range(self.r.randrange(3)):
            part = {
                "id": self.prefix + self.pick("t1", "t2"),
                "kind": "text",
                "mediaType": "text/plain",
                "selection": "body",
                "text": self.pick("x", "y"),
            }
            if hidden:
                part["selection"] = "omit"
                del part["text"]
            out.append(part)
        return out

    def workspace(self):
        change = {"cwd": self.pick("/a", "/b")}
        if self.one(3):
            change["workspaceRoots"] = self.pick([], ["/a"], ["/a", "/b"])
        return change

    def inject(self):
        return {
            "type": "inject",
            "target": "context",
            "operation": "append",
            "deliverAt": self.pick("now", "next_turn"),
            "value": self.messages(False),
        }

    def returned(self, kind):
        if kind == "model.request.before":
            return self.messages(False)
        if kind == "context.compact.before":
            return self.texts(False)
        if kind == "user.elicitation.request":
            return self.elicit_result()
        return self.value(2)

    def effect(self, kind, payload, caps):
        for _ in range(4):
            effect = self.well_formed(kind)
            if (effect["type"] == "deny" or effect.get("operation") == "stop") and not self.one(5):
                continue
            if effect["type"] in caps["effects"]:
                break
        operations = caps.get("modify", {}).get(effect.get("target"))
        if effect["type"] == "modify" and operations and not self.one(12):
            effect["operation"] = self.r.choice([name for name, on in operations.items() if on])
        if effect["type"] == "modify" and effect["operation"] == "replace" and kind in PLACES and self.one(3):
            value = payload
            for key in PLACES[kind]:
                value = value.get(key, [])
            effect["value"] = copy.deepcopy(value)
        if self.one(25):
            self.spoil(effect)
        return effect

    def well_formed(self, kind):
        name, _, of = self.r.choice(VOCABULARY[kind].split()).partition(":")
        if name == "deny":
            return self.pick(
                {"type": "deny", "reason": "r"},
                {"type": "deny", "reason": "r", "code": "com.example.c", "extensions": {"a.b": None}},
            )
        if name == "message":
            return {"type": "message", "text": self.pick("hello", "")}
        if name == "return":
            return {"type": "return", "value": self.returned(kind)}
        if name == "inject":
            return self.inject()
        if name == "flow":
            if of == "stop":
                return {"type": "flow", "operation": "stop", "reason": "r"}
            return self.pick(
                {"type": "flow", "operation": "continue"},
                {"type": "flow", "operation": "continue", "instruction": "go on"},
                {"type": "flow", "operation": "continue", "instruction": "again"},
            )
        if name == "modify":
            if of == "input":
                value = self.input()
            elif of in ("instructions", "summary"):
                value = self.texts(self.one(12))
            elif of == "workspace":
                value = self.workspace()
            elif kind == "user.elicitation.result":
                value = self.answers()
            else:
                value = self.messages(False)
            return {"type": "modify", "target": of, "operation": self.pick("replace", "merge"), "value": value}
        return {"type": name}

    def spoil(self, effect):
        how = self.r.randrange(6)
        if how == 0:
            effect["type"] = self.pick("nonsense", "allow", "ask", "return", "com.example.x")
        elif how == 1:
            effect["extra"] = True
        elif how == 2:
            effect.pop(self.r.choice(list(effect)))
        elif how == 3:
            effect["operation"] = self.pick("append", "replace", "continue", "drop", 1)
        elif how == 4:
            effect["value"] = self.pick(3, "text", None, {"k": None}, [{"id": "m"}], {}, [])
        else:
            effect["target"] = self.pick("input", "prompt", "content", "context", "nothing")


class Backend:
    """Answers with effects and keeps what it was sent."""

    def __init__(self, effects):
        self.effects = effects
        self.request_seen = None

    async def request(self, message):
        self.request_seen = copy.deepcopy(message)
        return {
            "jsonrpc": "2.0",
            "id": message["id"],
            "result": {"protocolVersion": "draft", "effects": copy.deepcopy(self.effects)},
        }

    async def notify(self, message):
        pass


HOST = host_capabilities()
VALIDATOR = Validator()


def occurrence(chain, number, source, harness):
    """The payload of the chain's event, and where it is the answer to a question
    that the harness remembers, the request that asked it."""
    payload = copy.deepcopy(chain["payload"])
    payload["time"] = "2024-01-01T00:00:00Z"
    original = None
    if chain["kind"] == "user.elicitation.result":
        payload["parentEventId"] = f"asked-{number}"
        if chain["asked"] is not None:
            original = {
                "jsonrpc": "2.0",
                "id": f"asked-{number}",
                "method": "hooks/intercept",
                "params": {
                    "protocolVersion": "draft",
                    "event": {
                        "id": f"asked-{number}",
                        "source": source,
                        "type": "user.elicitation.request",
                        "time": payload["time"],
                        "harness": harness,
                        "elicitation": copy.deepcopy(chain["asked"]),
                    },
                    "capabilities": {"effects": []},
                },
            }
    return payload, original


async def settle(chain, number, turns):
    """Settles the chain's event with these turns, by the official harness."""
    backends = {f"com.example.b{i}": Backend(turn["effects"]) for i, turn in enumerate(turns)}
    registration = {
        "protocolVersion": "draft",
        "hooks": [
            {
                "id": name,
                "transport": {"type": "http", "url": "http://127.0.0.1:1/"},
                "subscriptions": [
                    {
                        "events": [chain["kind"]],
                        "mode": "intercept",
                        "timeoutMs": 30000,
                        "failurePolicy": "fail-closed" if turn["closed"] else "fail-open",
                        "content": {"default": turn["hide"]},
                    }
                ],
            }
            for name, turn in zip(backends, turns, strict=True)
        ],
    }
    harness = Hooks(
        registration,
        source="urn:example:harness",
        harness=events.Harness(name="x", version="1"),
        capabilities=HOST,
        transport=backends,
    )
    harness.validator = harness._lineage.validator = VALIDATOR
    payload, original = occurrence(chain, number, "urn:example:harness", {"name": "x", "version": "1"})
    async with harness:
        result = await harness.dispatch(
            chain["kind"],
            payload,
            initial_state=chain["state"],
            capabilities=chain["capabilities"],
            event_id=f"e{number}",
            original_request=original,
        )
    return result, list(backends.values()), original


def settled(result):
    state = result._state
    return {
        "event": plain(result.event),
        "permission": str(result.permission),
        "candidate": plain(state.get("candidate")),
        "flow": state.get("flow", "none"),
        "instructions": state.get("continuationInstructions", []),
        "injections": plain(state.get("injections", [])),
        "messages": state.get("messages", []),
    }


def plain(value):
    return json.loads(json.dumps(value, default=float))


def same(a, b):
    """JSON equality: true is not 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def first_event(chain, backends, original):
    for backend in backends:
        if backend.request_seen:
            return backend.request_seen["params"]["event"]
    return None


class Report:
    def __init__(self, show):
        self.counts = collections.Counter()
        self.left = show

    def differ(self, what, number, chain, **values):
        self.counts["DISAGREEMENT " + what] += 1
        if self.left > 0:
            self.left -= 1
            print(f"chain {number}: {what}")
            for name, value in {**values, "chain": chain}.items():
                print(f"  {name}: {json.dumps(value, default=str)[:3000]}")


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--event", choices=list(VOCABULARY))
    parser.add_argument("--show", type=int, default=5)
    options = parser.parse_args()
    report = Report(options.show)
    direct, lines = [], []
    for number in range(options.first, options.first + options.count):
        chain = Generator(options.seed, number).chain(number, options.event)
        try:
            # An observer-free run whose only backend says nothing tells the
            # event as a gateway that asked for everything is sent it.
            _, (probe,), original = await settle(chain, number, [{"effects": [], "hide": "body", "closed": False}])
        except ValueError:
            report.counts["chains that the harness itself refuses"] += 1
            continue
        if probe.request_seen is None:
            report.counts["chains that have settled before"] += 1
            continue
        result, backends, original = await settle(chain, number, chain["turns"])
        whole = probe.request_seen["params"]["event"]
        direct.append((number, chain, result, backends))
        lines.append(
            {
                "event": whole,
                "capabilities": chain["capabilities"],
                "state": chain["state"],
                "asked": original["params"]["event"] if original else None,
                "turns": [
                    {
                        "effects": turn["effects"],
                        "closed": turn["closed"],
                        "shown": backend.request_seen["params"]["event"] if backend.request_seen else None,
                    }
                    for turn, backend in zip(chain["turns"], backends, strict=True)
                ],
            }
        )
    ours = subprocess.run(
        [options.binary, "-reduce"],
        input="".join(json.dumps(line) + "\n" for line in lines),
        capture_output=True,
        text=True,
        check=True,
    )
    for (number, chain, result, backends), line in zip(direct, ours.stdout.splitlines(), strict=True):
        reduced = json.loads(line)
        await compare(report, number, chain, result, backends, reduced)
    for what, count in sorted(report.counts.items()):
        print(f"{count:8} {what}")
    return 1 if any(what.startswith("DISAGREEMENT") for what in report.counts) else 0


async def compare(report, number, chain, result, backends, reduced):
    report.counts["chains compared"] += 1
    failed = {d["backend"] for d in result.diagnostics}
    for i, (backend, turn) in enumerate(itertools.zip_longest(backends, reduced["turns"])):
        name = f"com.example.b{i}"
        sent = backend.request_seen is not None
        if turn is None:
            if sent:
                return report.differ("one was called that should not be", number, chain, turn=i)
            continue
        report.counts["turns"] += 1
        if not sent and name not in failed:
            return report.differ("one was not called that should be", number, chain, turn=i, ours=turn)
        accepted = name not in failed
        report.counts["turns accepted" if accepted else "turns refused"] += 1
        if accepted:
            for effect in chain["turns"][i]["effects"]:
                report.counts[f"  accepted: {effect['type']} at {chain['kind']}"] += 1
        if sent:
            params = backend.request_seen["params"]
            for what in ("state", "capabilities"):
                if not same(params[what], turn[what]):
                    return report.differ(what + " that a backend is told", number, chain, turn=i, want=params[what], got=turn[what])
            if chain["turns"][i]["hide"] == "body" and not same(params["event"], turn["event"]):
                return report.differ("event that a backend is shown", number, chain, turn=i, want=params["event"], got=turn["event"])
            if not turn["sent"]:
                return report.differ("we would not have sent what was", number, chain, turn=i, ours=turn)
        if accepted != (turn["failure"] == ""):
            return report.differ(
                "accepted by one alone", number, chain, turn=i, official=accepted, ours=turn["failure"], diagnostics=[dict(d) for d in result.diagnostics]
            )
    want = settled(result)
    if reduced["code"]:
        report.counts[f"answers that are error {reduced['code']}"] += 1
        return None
    report.counts["answers"] += 1
    via, _, _ = await settle(chain, number, [{"effects": reduced["effects"] or [], "hide": "body", "closed": False}])
    got = settled(via)
    if via.diagnostics:
        return report.differ("the answer was refused", number, chain, answer=reduced["effects"], diagnostics=[dict(d) for d in via.diagnostics])
    if reduced["inexact"]:
        report.counts["answers that are inexact"] += 1
        return None
    if not same(want, got):
        return report.differ(
            "settled states",
            number,
            chain,
            answer=reduced["effects"],
            want={k: v for k, v in want.items() if not same(v, got[k])},
            got={k: v for k, v in got.items() if not same(v, want[k])},
        )
    report.counts["settled the same"] += 1
    return None


if __name__ == "__main__":
    sys.exit(anyio.run(main))
