// @agentclientprotocol/sdk: permission requests, and each answer to them.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";

import { choose, Client } from "./support/client.mjs";
import { calling, Sandbox } from "./support/sandbox.mjs";

/** A model that twice wants to run the same command, in two turns. */
const TWICE = [
  calling("Bash", { command: "touch made" }, "toolu_1"),
  { text: "First." },
  calling("Bash", { command: "touch made" }, "toolu_2"),
  { text: "Second." },
];

async function twoTurns(t, answer, replies = TWICE) {
  const sandbox = await Sandbox.make(t, replies);
  const client = await Client.start(sandbox, { answer });
  const { sessionId } = await client.open();
  const turn = async (id) => {
    const { stopReason } = await client.prompt(sessionId, "Make it.");
    assert.equal(stopReason, "end_turn");
    return client.call(sessionId, id);
  };
  const calls = [await turn("toolu_1"), await turn("toolu_2")];
  await client.end();
  return { sandbox, client, calls, made: existsSync(join(sandbox.work, "made")) };
}

const statuses = (calls) => calls.map((call) => call.status);

test("a question shows the call, why it is asked, and four answers", async (t) => {
  const { client } = await twoTurns(t, choose("allow_once"));
  const [{ toolCall, options, _meta }] = client.questions;
  assert.equal(toolCall.toolCallId, "toolu_1");
  assert.equal(toolCall.kind, "execute");
  assert.match(toolCall.title, /touch made/);
  assert.deepEqual(toolCall.rawInput, { command: "touch made" });
  const kinds = options.map((option) => option.kind);
  assert.deepEqual(kinds, ["allow_once", "allow_always", "reject_once", "reject_always"]);
  const always = options.filter((option) => option.kind.endsWith("always"));
  assert.ok(always.every((option) => option.name.includes("touch")), "the rule is shown before it is chosen");
  assert.ok(_meta.peri.reason, "the reason is told");
  const shown = client.updates(client.questions[0].sessionId, "tool_call");
  assert.equal(shown[0].toolCallId, "toolu_1", "the call is shown before it is asked about");
});

test("allow once: it runs, and the next one is asked about", async (t) => {
  const { client, calls, made } = await twoTurns(t, choose("allow_once"));
  assert.deepEqual([statuses(calls), client.questions.length, made], [["completed", "completed"], 2, true]);
});

test("allow always: the next one is not asked about, in this session and the next", async (t) => {
  const replies = [...TWICE, calling("Bash", { command: "touch made" }, "toolu_3"), { text: "Third." }];
  const { sandbox, client, calls, made } = await twoTurns(t, choose("allow_always"), replies);
  assert.deepEqual([statuses(calls), client.questions.length, made], [["completed", "completed"], 1, true]);
  const rules = JSON.parse(await readFile(join(sandbox.work, ".peri/settings.local.json"), "utf8"));
  assert.match(JSON.stringify(rules.permissions.allow), /touch/);
  const next = await Client.start(sandbox);
  const { sessionId } = await next.open();
  await next.prompt(sessionId, "Once more.");
  assert.equal(next.call(sessionId, "toolu_3").status, "completed");
  await next.end();
});

test("reject once: it does not run, the model is told, and the next one is asked about", async (t) => {
  const { sandbox, client, calls, made } = await twoTurns(t, choose("reject_once"));
  assert.deepEqual([statuses(calls), client.questions.length, made], [["failed", "failed"], 2, false]);
  const told = JSON.stringify((await sandbox.requests())[1].messages.at(-1));
  assert.match(told, /"is_error":true/);
});

test("reject always: the next one is refused without a question", async (t) => {
  const { client, calls, made } = await twoTurns(t, choose("reject_always"));
  assert.deepEqual([statuses(calls), client.questions.length, made], [["failed", "failed"], 1, false]);
});

test("no answer is a refusal: cancelled, an error, an option that was not offered", async (t) => {
  const answers = [
    () => ({ outcome: { outcome: "cancelled" } }),
    () => {
      throw new Error("the dialog broke");
    },
    () => ({ outcome: { outcome: "selected", optionId: "sudo" } }),
  ];
  for (const answer of answers) {
    const { calls, made } = await twoTurns(t, answer);
    assert.deepEqual([statuses(calls), made], [["failed", "failed"], false]);
  }
});

test("reading is not asked about", async (t) => {
  const sandbox = await Sandbox.make(t, [calling("Read", { file_path: "a" }, "toolu_1"), { text: "Read." }]);
  await sandbox.write("work/a", "x");
  const client = await Client.start(sandbox);
  const { sessionId } = await client.open();
  await client.prompt(sessionId, "Read it.");
  assert.equal(client.call(sessionId, "toolu_1").status, "completed");
  await client.end();
});

test("parallel calls are asked about one by one, and each answer is for its own call", async (t) => {
  const commands = ["touch one", "touch two"].map((command) => ({ name: "Bash", input: { command } }));
  const sandbox = await Sandbox.make(t, [{ tool_calls: commands }, { text: "Done." }]);
  const answer = (question) =>
    choose(question.toolCall.rawInput.command === "touch two" ? "allow_once" : "reject_once")(question);
  const client = await Client.start(sandbox, { answer });
  const { sessionId } = await client.open();
  await client.prompt(sessionId, "Both.");
  assert.deepEqual(["one", "two"].map((name) => existsSync(join(sandbox.work, name))), [false, true]);
  await client.end();
});
