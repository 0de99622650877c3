// @agentclientprotocol/sdk: MCP servers that the client gives to a session.

import assert from "node:assert/strict";
import { test } from "node:test";

import { methods } from "@agentclientprotocol/sdk";

import { choose, Client } from "./support/client.mjs";
import { PNG, serveHttp, STDIO } from "./support/mcp-server.mjs";
import { untilNoProcess } from "./support/processes.mjs";
import { calling, Sandbox } from "./support/sandbox.mjs";

const stdio = (name, env = []) => ({ name, ...STDIO, env });

/** One call of a tool of the server `given`, then the end. */
const using = (tool, input = {}) => [calling(`mcp__given__${tool}`, input, "toolu_1"), { text: "Done." }];

/** A session with those servers, one turn, and what became of its call. */
async function turnWith(t, mcpServers, replies, { answer = choose("allow_once"), ...options } = {}) {
  const sandbox = await Sandbox.make(t, replies, options);
  const client = await Client.start(sandbox, { answer });
  const { sessionId } = await client.open({ mcpServers });
  const { stopReason } = await client.prompt(sessionId, "Go.");
  assert.equal(stopReason, "end_turn");
  const call = client.call(sessionId, "toolu_1");
  await client.end();
  await untilNoProcess(sandbox);
  return { sandbox, client, sessionId, call };
}

test("over standard streams: the model sees the tools and calls one", async (t) => {
  const { sandbox, call } = await turnWith(t, [stdio("given")], using("shout", { words: "hello" }));
  assert.equal(call.status, "completed");
  assert.equal(call.name, "mcp__given__shout");
  assert.equal(call.content[0].content.text, "HELLO");
  const [first, second] = await sandbox.requests();
  const offered = first.tools.find(({ name }) => name === "mcp__given__shout");
  assert.match(offered.description, /Says it louder/);
  assert.deepEqual(Object.keys(offered.input_schema.properties), ["words"]);
  assert.match(JSON.stringify(second.messages.at(-1)), /HELLO/);
});

test("over HTTP, with the headers that the client wants", async (t) => {
  const sandbox = await Sandbox.make(t, using("shout", { words: "hello" }));
  const { url, headers } = await serveHttp(sandbox);
  const client = await Client.start(sandbox, { answer: choose("allow_once") });
  assert.equal(client.initialized.agentCapabilities.mcpCapabilities.http, true);
  const server = { type: "http", name: "given", url, headers: [{ name: "X-Token", value: "of the client" }] };
  const { sessionId } = await client.open({ mcpServers: [server] });
  await client.prompt(sessionId, "Go.");
  assert.equal(client.call(sessionId, "toolu_1").content[0].content.text, "HELLO");
  assert.ok(headers.length > 0 && headers.every((headers) => headers["x-token"] === "of the client"));
  await client.end();
});

test("variables of the environment that the client gives", async (t) => {
  const server = stdio("given", [{ name: "SECRET", value: "of the client" }]);
  const { call } = await turnWith(t, [server], using("secret"));
  assert.equal(call.content[0].content.text, "of the client");
});

test("its calls are asked about, whatever it says of itself, and a rule allows them", async (t) => {
  const asked = await turnWith(t, [stdio("given")], using("secret"), { answer: choose("reject_once") });
  assert.equal(asked.call.status, "failed");
  assert.equal(asked.client.questions.length, 1);
  const settings = { permissions: { allow: ["mcp__given__secret"] } };
  const allowed = await turnWith(t, [stdio("given")], using("secret"), { settings, answer: undefined });
  assert.equal(allowed.call.status, "completed");
});

test("a tool that fails, and one that shows a picture", async (t) => {
  const failed = await turnWith(t, [stdio("given")], using("fail"));
  assert.equal(failed.call.status, "failed");
  assert.match(failed.call.content[0].content.text, /it went wrong/);
  const shown = await turnWith(t, [stdio("given")], using("picture"));
  assert.equal(shown.call.status, "completed");
  assert.equal(shown.call.content.find(({ content }) => content.type === "image").content.data, PNG);
});

test("a server that cannot be started is told of and leaves the others alone", async (t) => {
  const broken = { name: "broken", command: "/no/such/program", args: [], env: [] };
  const replies = using("shout", { words: "hello" });
  const { call, client, sessionId } = await turnWith(t, [broken, stdio("given")], replies);
  assert.equal(call.status, "completed");
  assert.match(client.text(sessionId), /broken/, "the client is told of it");
});

/** The end of a call whose server has a question for the user, and what was asked. */
async function asked(t, capabilities, fill) {
  const forms = [];
  const fillIn = (form) => {
    forms.push(form);
    return fill;
  };
  const sandbox = await Sandbox.make(t, using("ask"), { settings: { permissions: { mode: "bypass" } } });
  const client = await Client.start(sandbox, { capabilities, fillIn });
  const { sessionId } = await client.open({ mcpServers: [stdio("given")] });
  await client.prompt(sessionId, "Ask.");
  await client.end();
  return { forms, told: client.call(sessionId, "toolu_1").content[0].content.text };
}

test("its question is a form for the user, where the client can show one", async (t) => {
  const capabilities = { elicitation: { form: {} } };
  const { forms, told } = await asked(t, capabilities, { action: "accept", content: { colour: "green" } });
  assert.equal(told, "The user likes green.");
  const [{ message, mode, requestedSchema }] = forms;
  assert.equal(mode, "form");
  assert.match(message, /Which colour\?/);
  assert.match(message, /given/, "the user sees who asks");
  assert.deepEqual(Object.keys(requestedSchema.properties), ["colour"]);
  assert.equal((await asked(t, capabilities, { action: "decline" })).told, "The user's answer: decline");
});

test("its question has no answer where the client shows no forms", async (t) => {
  const { forms, told } = await asked(t, {}, {});
  assert.deepEqual(forms, []);
  assert.doesNotMatch(told, /likes/);
});

test("its prompts are commands of the session", async (t) => {
  const sandbox = await Sandbox.make(t, [{ text: "Hello, dear reader!" }]);
  const client = await Client.start(sandbox);
  const { sessionId } = await client.open({ mcpServers: [stdio("given")] });
  const update = await client.untilTold(sessionId, "available_commands_update", ({ availableCommands }) =>
    availableCommands.some(({ name }) => name === "mcp__given__greet"),
  );
  const command = update.availableCommands.find(({ name }) => name === "mcp__given__greet");
  assert.match(command.description, /Greets somebody/);
  assert.match(command.input.hint, /name/);
  await client.prompt(sessionId, "/mcp__given__greet reader");
  const [{ messages }] = await sandbox.requests();
  assert.match(JSON.stringify(messages), /Greet reader warmly\./);
  await client.end();
});

test("a loaded session has the servers that are given with the load", async (t) => {
  const sandbox = await Sandbox.make(t, [{ text: "One." }, ...using("shout", { words: "again" })]);
  const first = await Client.start(sandbox);
  const { sessionId } = await first.open();
  await first.prompt(sessionId, "Begin.");
  await first.end();
  const second = await Client.start(sandbox, { answer: choose("allow_once") });
  const load = { sessionId, cwd: sandbox.work, mcpServers: [stdio("given")] };
  await second.agent.request(methods.agent.session.load, load);
  await second.prompt(sessionId, "Go on.");
  assert.equal(second.call(sessionId, "toolu_1").content[0].content.text, "AGAIN");
  await second.end();
});
