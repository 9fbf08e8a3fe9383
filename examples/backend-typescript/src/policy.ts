// The rules. A pattern sees text, while a shell sees what the text expands to:
// these are an example of rules, not protection.

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };

export type Effect =
  | { type: "deny"; reason: string; code: string }
  | { type: "ask" }
  | { type: "modify"; target: "input"; operation: "merge"; value: JsonObject };

const maxTimeout = 60_000; // milliseconds
const forcePush = /(^|\s)git\s([^\n]*\s)?push\s([^\n]*\s)?(--force|-f)(\s|$)/;
const clusterDelete = /(^|\s)kubectl\s([^\n]*\s)?delete(\s|$)/;

/**
 * Returns the effects on one tool call; none is no objection. Only what the
 * harness advertised may be answered: where it cannot ask or change the input,
 * the answer is the deny that permits less.
 */
export function decide(tool: JsonObject, capabilities: JsonObject): Effect[] {
  const command = commandOf(at(tool, "input", "command"));
  if (tool["kind"] === "shell" && command === undefined) {
    return [deny("The command cannot be read.", "com.example.unreadable")];
  }
  if (forcePush.test(command ?? "")) {
    return [deny("Force pushes are not allowed.", "com.example.force_push")];
  }
  const effects: Effect[] = [];
  const timeout = at(tool, "input", "timeout");
  if (typeof timeout === "number" && timeout > maxTimeout) {
    if (at(capabilities, "modify", "input", "merge") !== true) {
      return [deny("Use a timeout of at most 60000 ms.", "com.example.timeout")];
    }
    effects.push({ type: "modify", target: "input", operation: "merge", value: { timeout: maxTimeout } });
  }
  if (clusterDelete.test(command ?? "")) {
    const advertised = capabilities["effects"];
    if (!Array.isArray(advertised) || !advertised.includes("ask")) {
      return [deny("Deleting in a cluster needs somebody's consent.", "com.example.cluster_delete")];
    }
    effects.push({ type: "ask" });
  }
  return effects;
}

function deny(reason: string, code: string): Effect {
  return { type: "deny", reason, code };
}

/** Returns a shell command, which tools take as text or as its words. */
function commandOf(value: Json | undefined): string | undefined {
  if (typeof value === "string") return value;
  if (!Array.isArray(value) || value.length === 0) return undefined;
  return value.every((word) => typeof word === "string") ? value.join(" ") : undefined;
}

/** Whether a value is a JSON object. */
export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the member of a value at a path. An object's own members only: not "constructor". */
export function at(value: Json | undefined, ...path: string[]): Json | undefined {
  for (const name of path) {
    value = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  }
  return value;
}
