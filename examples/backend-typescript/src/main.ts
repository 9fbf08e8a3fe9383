// A policy backend of the Agent Hooks Protocol on node:http alone: a starting
// point to copy. policy.ts has its rules, this file the rest.

import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { at, decide, isObject, type Json, type JsonObject } from "./policy.js";

const maxBody = 2 << 20; // bytes: more than the gateway sends with its default limits.body

/** What a draft registration may leave to the backend to say. */
const configuration: JsonObject = {
  subscriptions: [
    { events: ["tool.before"], mode: "intercept", timeoutMs: 750, failurePolicy: "fail-closed", content: { default: "metadata" } },
    { events: ["tool.after"], mode: "observe", content: { default: "omit" } },
  ],
};

const token = process.env["POLICY_TOKEN"];
if (!token) {
  console.error("POLICY_TOKEN is not set: set it to the token that callers have to send");
  process.exit(1);
}
const credential = digest(`Bearer ${token}`);

/** Digests of equal length are compared, so that the time taken says nothing about the token. */
function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [path] = (request.url ?? "").split("?");
  if (path === "/healthz" && request.method === "GET") return send(response, 200, "ok\n");
  if (path !== "/ahp") return send(response, 404);
  if (request.method !== "POST") return send(response, 405, "", { allow: "POST" });
  if (!timingSafeEqual(digest(request.headers.authorization ?? ""), credential)) {
    return send(response, 401, "", { "www-authenticate": "Bearer" });
  }
  const [media] = (request.headers["content-type"] ?? "").split(";");
  if (media?.trim().toLowerCase() !== "application/json") return send(response, 415);

  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size <= maxBody) parts.push(part); // the rest is read and forgotten
  }
  if (size > maxBody) return send(response, 413);
  const answered = answer(Buffer.concat(parts));
  if (answered === undefined) return send(response, 204);
  send(response, 200, JSON.stringify(answered), { "content-type": "application/json" });
}

/** Returns the answer to a message, and undefined to a notification. */
function answer(body: Buffer): JsonObject | undefined {
  let message: Json;
  try {
    message = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body)) as Json;
  } catch {
    return failure(null, -32700, "Parse error");
  }
  const id = at(message, "id");
  const method = at(message, "method");
  const version = at(message, "params", "protocolVersion");
  if (at(message, "jsonrpc") !== "2.0" || typeof method !== "string" || (id !== undefined && typeof id !== "string" && typeof id !== "number")) {
    return failure(null, -32600, "Invalid Request");
  }
  if (id === undefined) {
    // It is never answered, not even where it is wrong.
    if (method === "hooks/observe") console.error(`observed ${JSON.stringify(at(message, "params", "event", "type"))?.slice(0, 64)}`);
    return undefined;
  }
  if (method !== "hooks/intercept" && method !== "hooks/configuration") return failure(id, -32601, "Method not found");
  if (version !== "draft" && (version !== "0.1" || method === "hooks/configuration")) {
    return failure(id, -32001, "unsupported_protocol_version", { supported: ["0.1", "draft"] });
  }
  if (method === "hooks/configuration") return result(id, { protocolVersion: version, configuration });

  // What the policy relies on. What cannot be judged is an error: the
  // subscription's failure policy then holds.
  const tool = at(message, "params", "event", "tool");
  const capabilities = at(message, "params", "capabilities");
  const advertised = at(capabilities, "effects");
  if (typeof id !== "string" || id === "" || at(message, "params", "event", "id") !== id) {
    return failure(id, -32602, "params.event.id must be the request's id");
  }
  if (at(message, "params", "event", "type") !== "tool.before") return failure(id, -32002, "unsupported_event");
  if (!isObject(tool) || !isObject(at(tool, "input"))) return failure(id, -32602, "params.event.tool.input must be an object");
  if (!isObject(capabilities) || !Array.isArray(advertised) || !advertised.includes("deny")) {
    return failure(id, -32602, 'params.capabilities.effects must hold "deny"');
  }
  return result(id, { protocolVersion: version, effects: decide(tool, capabilities) });
}

function result(id: Json, value: JsonObject): JsonObject {
  return { jsonrpc: "2.0", id, result: value };
}

function failure(id: Json, code: number, message: string, data?: JsonObject): JsonObject {
  return { jsonrpc: "2.0", id, error: data ? { code, message, data } : { code, message } };
}

/** With its length known, head and body of an answer leave in one piece. */
function send(response: ServerResponse, status: number, body = "", headers: Record<string, string> = {}): void {
  if (status !== 204) headers["content-length"] = String(Buffer.byteLength(body));
  if (!server.listening) headers["connection"] = "close"; // it is shutting down
  response.writeHead(status, headers).end(body);
}

const server = createServer((request, response) => {
  serve(request, response).catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : "a request failed");
    if (response.headersSent) response.destroy();
    else send(response, 500); // an operational failure: the failure policy holds
  });
});
server.headersTimeout = 5_000;
server.requestTimeout = 10_000;
server.keepAliveTimeout = 60_000; // longer than the gateway's own, which is 4 s

const [host = "127.0.0.1", port = "9001"] = (process.argv[2] ?? "").split(":").filter(Boolean);
server.listen(Number(port), host, () => {
  const { address, port } = server.address() as AddressInfo;
  console.log(`listening on http://${address}:${port}`);
});
for (const signal of ["SIGTERM", "SIGINT"] as const) {
  process.once(signal, () => {
    // What was begun is finished, for at most 5 s.
    server.close(() => process.exit(0));
    server.closeIdleConnections();
    setTimeout(() => process.exit(1), 5_000).unref();
  });
}
