"""The rules. A pattern sees text, while a shell sees what the text expands to:
these are an example of rules, not protection."""

import re
from typing import Any

from agenthooksprotocol import effect
from agenthooksprotocol.server import hooks

MAX_TIMEOUT = 60_000  # milliseconds
FORCE_PUSH = re.compile(r"(^|\s)git\s([^\n]*\s)?push\s([^\n]*\s)?(--force|-f)(\s|$)")
CLUSTER_DELETE = re.compile(r"(^|\s)kubectl\s([^\n]*\s)?delete(\s|$)")


def decide(context: hooks.ToolBeforeContext) -> hooks.ToolBeforeReply:
    """Answers one tool call; no effects are no objection.

    Only what the harness advertised may be answered: where it cannot ask or
    change the input, the answer is the deny that permits less.
    """
    tool = context.event["tool"]
    command = command_of(tool["input"].get("command"))
    if tool.get("kind") == "shell" and command is None:
        return deny("The command cannot be read.", "com.example.unreadable")
    if FORCE_PUSH.search(command or ""):
        return deny("Force pushes are not allowed.", "com.example.force_push")
    effects: list[Any] = []
    timeout = tool["input"].get("timeout")
    if isinstance(timeout, int | float) and timeout > MAX_TIMEOUT:
        modify = context.capabilities.get("modify", {})
        if not modify.get("input", {}).get("merge"):
            return deny("Use a timeout of at most 60000 ms.", "com.example.timeout")
        effects.append(effect.ModifyInput(operation="merge", value={"timeout": MAX_TIMEOUT}))
    if CLUSTER_DELETE.search(command or ""):
        if not context.capabilities.supports("ask"):
            return deny("Deleting in a cluster needs somebody's consent.", "com.example.cluster_delete")
        effects.append(effect.Ask())
    return hooks.ToolBeforeReply(effects=tuple(effects))


def deny(reason: str, code: str) -> hooks.ToolBeforeReply:
    return hooks.ToolBeforeReply(effects=(effect.Deny(reason=reason, code=code),))


def command_of(value: Any) -> str | None:
    """Returns a shell command, which tools take as text or as its words."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        return " ".join(value)
    return None
