// The judge of frames is worth something only if it rejects wrong ones.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Judge } from "./support/schema.mjs";

/** Findings about one frame of the agent, after one request of the client. */
function findings(frame, method = "session/prompt") {
  const judge = new Judge();
  judge.fromClient({ jsonrpc: "2.0", id: 1, method, params: {} });
  judge.fromAgent(frame);
  return judge.findings;
}

const update = (update) => ({ jsonrpc: "2.0", method: "session/update", params: { sessionId: "s", update } });
const result = (result) => ({ jsonrpc: "2.0", id: 1, result });
const chunk = (content) => update({ sessionUpdate: "agent_message_chunk", content });

const RIGHT = {
  "a chunk": chunk({ type: "text", text: "Hello." }),
  "a call": update({ sessionUpdate: "tool_call", toolCallId: "1", title: "Read", kind: "read", status: "pending" }),
  "free input of a call": update({ sessionUpdate: "tool_call", toolCallId: "1", title: "x", rawInput: { any: [1] } }),
  "a diff": update({
    sessionUpdate: "tool_call_update",
    toolCallId: "1",
    content: [{ type: "diff", path: "/a", oldText: null, newText: "x" }],
  }),
  "meta": chunk({ type: "text", text: "x", _meta: { anything: { at: "all" } } }),
  "an extension's notification": { jsonrpc: "2.0", method: "_peri/event", params: { type: "turn_started" } },
  "a stop": result({ stopReason: "end_turn", _meta: { peri: {} } }),
  "an error": { jsonrpc: "2.0", id: 1, error: { code: -32603, message: "No.", data: { kind: "model" } } },
  "an error about rubbish": { jsonrpc: "2.0", id: null, error: { code: -32700, message: "No JSON." } },
  "a cancelled question": { jsonrpc: "2.0", method: "$/cancel_request", params: { requestId: 3 } },
};

const WRONG = {
  "no JSON-RPC": { id: 1, result: { stopReason: "end_turn" } },
  "an unknown stop": result({ stopReason: "finished" }),
  "a stop that is missing": result({}),
  "result and error": { ...result({ stopReason: "end_turn" }), error: { code: 1, message: "x" } },
  "neither result nor error": { jsonrpc: "2.0", id: 1 },
  "an answer to no request": { jsonrpc: "2.0", id: 2, result: { stopReason: "end_turn" } },
  "an error without a message": { jsonrpc: "2.0", id: 1, error: { code: -32603 } },
  "an error whose code is text": { jsonrpc: "2.0", id: 1, error: { code: "-32603", message: "x" } },
  "an unknown update": update({ sessionUpdate: "agent_said", content: { type: "text", text: "x" } }),
  "content that is a string": chunk("Hello."),
  "content of an unknown type": chunk({ type: "markdown", text: "x" }),
  "an image without its type": chunk({ type: "image", data: "AA==" }),
  "an unknown kind of call": update({ sessionUpdate: "tool_call", toolCallId: "1", title: "x", kind: "grep" }),
  "an unknown status": update({ sessionUpdate: "tool_call_update", toolCallId: "1", status: "done" }),
  "a diff without its path": update({
    sessionUpdate: "tool_call_update",
    toolCallId: "1",
    content: [{ type: "diff", newText: "x" }],
  }),
  "a negative figure": update({ sessionUpdate: "usage_update", used: -1, size: 100 }),
  "a misspelt field": update({ sessionUpdate: "tool_call", toolCallId: "1", title: "x", raw_input: {} }),
  "a misspelt field deep inside": chunk({ type: "text", text: "x", annotations: { audiences: ["user"] } }),
  "a stranger beside the result's fields": result({ stopReason: "end_turn", usages: {} }),
  "a stranger beside the message's members": { ...result({ stopReason: "end_turn" }), meta: {} },
  "a notification of nobody": { jsonrpc: "2.0", method: "session/updated", params: {} },
  "a request of nobody": { jsonrpc: "2.0", id: 9, method: "session/ask", params: {} },
  "a question without options": {
    jsonrpc: "2.0",
    id: 9,
    method: "session/request_permission",
    params: { sessionId: "s", toolCall: { toolCallId: "1" } },
  },
  "an option of an unknown kind": {
    jsonrpc: "2.0",
    id: 9,
    method: "session/request_permission",
    params: { sessionId: "s", toolCall: { toolCallId: "1" }, options: [{ optionId: "a", name: "A", kind: "maybe" }] },
  },
  "a batch": [result({ stopReason: "end_turn" })],
};

for (const [name, frame] of Object.entries(RIGHT)) {
  test(`right: ${name}`, () => assert.deepEqual(findings(frame), []));
}

for (const [name, frame] of Object.entries(WRONG)) {
  test(`wrong: ${name}`, () => assert.notDeepEqual(findings(frame), []));
}

test("wrong: the result of another method", () => {
  assert.notDeepEqual(findings(result({ stopReason: "end_turn" }), "session/new"), []);
  assert.deepEqual(findings(result({ sessionId: "s" }), "session/new"), []);
});

test("wrong: a second answer", () => {
  const judge = new Judge();
  judge.fromClient({ jsonrpc: "2.0", id: 1, method: "session/prompt", params: {} });
  judge.fromAgent(result({ stopReason: "end_turn" }));
  assert.deepEqual(judge.findings, []);
  judge.fromAgent(result({ stopReason: "end_turn" }));
  assert.equal(judge.findings.length, 1);
});

test("what has no answer is named", () => {
  const judge = new Judge();
  judge.fromClient({ jsonrpc: "2.0", id: 7, method: "session/prompt", params: {} });
  assert.deepEqual(judge.unanswered, ["session/prompt (7)"]);
});
