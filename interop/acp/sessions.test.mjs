// @agentclientprotocol/sdk: a session's life, and a turn with a tool.

import assert from "node:assert/strict";
import { test } from "node:test";

import { methods } from "@agentclientprotocol/sdk";

import { Client } from "./support/client.mjs";
import { Signpost } from "./support/processes.mjs";
import { calling, Sandbox } from "./support/sandbox.mjs";

const { session } = methods.agent;

/** A request that must fail, and its error. */
async function failure(request) {
  try {
    await request;
  } catch (error) {
    return error;
  }
  throw new assert.AssertionError({ message: "the request should have failed" });
}

/** What is told of a session, with its text in one piece: how it was cut is not the point of a comparison. */
function told(client, sessionId) {
  const pieces = [];
  for (const update of client.updates(sessionId)) {
    const type = update.sessionUpdate;
    if (/_message_chunk$|_thought_chunk$/.test(type)) {
      const last = pieces.at(-1);
      if (last?.type === type) last.text += update.content.text;
      else pieces.push({ type, text: update.content.text });
    } else if (type === "tool_call") {
      pieces.push({ type, call: client.call(sessionId, update.toolCallId) });
    }
  }
  return pieces;
}

test("initialize says what Peri can do", async (t) => {
  const sandbox = await Sandbox.make(t, []);
  const client = await Client.start(sandbox);
  const { protocolVersion, agentInfo, agentCapabilities } = client.initialized;
  assert.equal(protocolVersion, 1);
  assert.equal(agentInfo.name, "peri");
  assert.match(agentInfo.version, /^\d+\.\d+\.\d+/);
  assert.equal(agentCapabilities.loadSession, true);
  assert.deepEqual(agentCapabilities.promptCapabilities, { image: true, audio: false, embeddedContext: true });
  assert.equal(agentCapabilities.mcpCapabilities.http, true);
  assert.deepEqual(Object.keys(agentCapabilities.sessionCapabilities).sort(), ["close", "delete", "list", "resume"]);
  await client.end();
});

test("a turn with thought, text and a tool", async (t) => {
  const sandbox = await Sandbox.make(t, [
    { thinking: "Where is it?", text: ["I will ", "look."], ...calling("Read", { file_path: "notes.txt" }, "toolu_1") },
    { text: ["It says ", "hello."], usage: { input: 100, output: 20 } },
  ]);
  await sandbox.write("work/notes.txt", "hello\n");
  const client = await Client.start(sandbox);
  const { sessionId } = await client.open();
  const { stopReason } = await client.prompt(sessionId, "What do the notes say?");
  assert.equal(stopReason, "end_turn");
  assert.equal(client.text(sessionId), "I will look.It says hello.");
  assert.deepEqual(
    client.updates(sessionId, "agent_thought_chunk").map((update) => update.content.text).join(""),
    "Where is it?",
  );
  const call = client.call(sessionId, "toolu_1");
  assert.equal(call.status, "completed");
  assert.equal(call.kind, "read");
  assert.equal(call.name, "Read");
  assert.deepEqual(call.rawInput, { file_path: "notes.txt" });
  assert.deepEqual(call.locations.map((location) => location.path), [`${sandbox.work}/notes.txt`]);
  assert.match(call.content[0].content.text, /hello/);
  const usage = client.updates(sessionId, "usage_update").at(-1);
  assert.ok(usage.used >= 120 && usage.size > usage.used, JSON.stringify(usage));
  await client.end();
});

test("a change of a file is shown as a diff", async (t) => {
  const sandbox = await Sandbox.make(
    t,
    [
      calling("Read", { file_path: "a.txt" }, "toolu_1"),
      calling("Edit", { file_path: "a.txt", old_string: "one", new_string: "two" }, "toolu_2"),
      { text: "Done." },
    ],
    { settings: { permissions: { mode: "accept-edits" } } },
  );
  const file = await sandbox.write("work/a.txt", "one\n");
  const client = await Client.start(sandbox);
  const { sessionId } = await client.open();
  await client.prompt(sessionId, "Change it.");
  const { kind, status, content } = client.call(sessionId, "toolu_2");
  assert.deepEqual({ kind, status }, { kind: "edit", status: "completed" });
  const [{ type, path, oldText, newText }] = content;
  assert.deepEqual({ type, path, oldText, newText }, { type: "diff", path: file, oldText: "one\n", newText: "two\n" });
  await client.end();
});

test("a loaded session tells what the live one told", async (t) => {
  const sandbox = await Sandbox.make(t, [
    { thinking: "Hm.", text: ["First ", "this."], ...calling("Read", { file_path: "notes.txt" }, "toolu_1") },
    { text: "Then that." },
    { text: "And more." },
  ]);
  await sandbox.write("work/notes.txt", "hello\n");
  const live = await Client.start(sandbox);
  const { sessionId } = await live.open();
  await live.prompt(sessionId, "Look.");
  await live.end();

  const later = await Client.start(sandbox);
  await later.agent.request(session.load, { sessionId, cwd: sandbox.work, mcpServers: [] });
  const [prompt, ...rest] = told(later, sessionId);
  assert.deepEqual(prompt, { type: "user_message_chunk", text: "Look." });
  // By which updates a call came together is not the point.
  const comparable = (piece) => (piece.call ? { ...piece, call: { ...piece.call, sessionUpdate: "" } } : piece);
  assert.deepEqual(rest.map(comparable), told(live, sessionId).map(comparable));
  // And it goes on.
  await later.prompt(sessionId, "More.");
  const asked = (await sandbox.requests()).at(-1);
  assert.match(JSON.stringify(asked.messages), /Look\..*Then that\..*More\./s);
  await later.end();
});

test("a resumed session goes on and tells nothing of before", async (t) => {
  const sandbox = await Sandbox.make(t, [{ text: "One." }, { text: "Two." }]);
  const first = await Client.start(sandbox);
  const { sessionId } = await first.open();
  await first.prompt(sessionId, "Count.");
  await first.end();
  const second = await Client.start(sandbox);
  await second.agent.request(session.resume, { sessionId, cwd: sandbox.work, mcpServers: [] });
  await second.prompt(sessionId, "On.");
  assert.equal(second.text(sessionId), "Two.");
  assert.deepEqual(second.updates(sessionId, "user_message_chunk"), []);
  const asked = (await sandbox.requests()).at(-1);
  assert.match(JSON.stringify(asked.messages), /Count\..*One\..*On\./s);
  await second.end();
});

test("sessions are listed with their titles, closed, and deleted", async (t) => {
  const sandbox = await Sandbox.make(t, [{ text: "One." }, { text: "Two." }]);
  const client = await Client.start(sandbox);
  const listed = async () => (await client.agent.request(session.list, { cwd: sandbox.work })).sessions;
  const first = await client.open();
  await client.prompt(first.sessionId, "The first matter");
  const second = await client.open();
  await client.prompt(second.sessionId, "The second matter");
  const sessions = await listed();
  assert.deepEqual(sessions.map(({ sessionId }) => sessionId), [second.sessionId, first.sessionId]);
  assert.match(sessions[1].title, /first matter/);
  assert.ok(Date.parse(sessions[1].updatedAt) > 0, sessions[1].updatedAt);
  assert.equal(sessions[1].cwd, sandbox.work);

  await client.agent.request(session.close, { sessionId: first.sessionId });
  assert.equal((await failure(client.prompt(first.sessionId, "x"))).code, -32002);
  await client.agent.request(session.close, { sessionId: first.sessionId });
  assert.equal((await listed()).length, 2, "a closed session is still stored");
  await client.agent.request(session.delete, { sessionId: first.sessionId });
  assert.deepEqual((await listed()).map(({ sessionId }) => sessionId), [second.sessionId]);
  const gone = await failure(client.agent.request(session.load, { ...first, cwd: sandbox.work, mcpServers: [] }));
  assert.equal(gone.code, -32002);
  await client.agent.request(session.delete, { sessionId: second.sessionId });
  assert.deepEqual(await listed(), []);
  await client.end();
});

test("two sessions of one connection run side by side", async (t) => {
  const sandbox = await Sandbox.make(
    t,
    [calling("Bash", { command: "echo here > signpost; until [ -e go ]; do sleep 0.02; done" }), { text: "Done." }],
    { choose: "by_history", settings: { permissions: { mode: "bypass" } } },
  );
  const signpost = new Signpost(sandbox);
  const client = await Client.start(sandbox);
  const [one, two] = [await client.open(), await client.open()];
  const turns = [client.prompt(one.sessionId, "Go."), client.prompt(two.sessionId, "Go.")];
  assert.deepEqual(await signpost.next(2), ["here", "here"], "both commands run");
  await sandbox.write("work/go", "");
  const ends = await Promise.all(turns);
  assert.deepEqual(ends.map(({ stopReason }) => stopReason), ["end_turn", "end_turn"]);
  await client.end();
});

test("Peri's own events come only to a client that wants them", async (t) => {
  const check = async (meta, expected) => {
    const sandbox = await Sandbox.make(t, [{ text: "Hello." }]);
    const client = await Client.start(sandbox, { meta });
    const { sessionId } = await client.open();
    await client.prompt(sessionId, "Hello.");
    await client.end();
    const events = client.extensions.map(({ method, params }) => `${method} ${params.type}`);
    assert.deepEqual(events.filter((event) => /turn_/.test(event)), expected);
  };
  await check(undefined, []);
  await check({ peri: { events: 1 } }, ["_peri/event turn_started", "_peri/event turn_ended"]);
});

test("what is wrong is answered by an error, and the connection lives", async (t) => {
  const sandbox = await Sandbox.make(t, [{ text: "Still here." }]);
  const client = await Client.start(sandbox);
  const cwd = sandbox.work;
  const request = (method, params) => failure(client.agent.request(method, params));
  const unknown = "0197a5a0-0000-7000-8000-000000000000";
  assert.equal((await request("session/paint", {})).code, -32601);
  assert.equal((await request("_other/thing", {})).code, -32601);
  assert.equal((await request(session.new, { cwd: "relative", mcpServers: [] })).code, -32602);
  assert.equal((await request(session.load, { sessionId: unknown, cwd, mcpServers: [] })).code, -32002);
  assert.equal((await request(session.load, { sessionId: "no id", cwd, mcpServers: [] })).code, -32002);
  assert.equal((await failure(client.prompt(unknown, "x"))).code, -32002);
  const { sessionId } = await client.open();
  const audio = { type: "audio", mimeType: "audio/wav", data: "AAAA" };
  assert.equal((await failure(client.prompt(sessionId, [audio]))).code, -32602);
  assert.equal((await client.prompt(sessionId, "Are you there?")).stopReason, "end_turn");
  await client.end();
});

test("a failing model is an error with the provider's own words", async (t) => {
  const sandbox = await Sandbox.make(t, [
    { status: 400, error: { type: "invalid_request_error", message: "the moon is in the wrong quarter" } },
    { text: "Better now." },
  ]);
  const client = await Client.start(sandbox);
  const { sessionId } = await client.open();
  const error = await failure(client.prompt(sessionId, "Go."));
  assert.equal(error.code, -32603);
  assert.match(error.message, /the moon is in the wrong quarter/);
  assert.equal((await client.prompt(sessionId, "Again.")).stopReason, "end_turn");
  await client.end();
});
