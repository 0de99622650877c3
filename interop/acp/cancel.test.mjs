// @agentclientprotocol/sdk: cancelling a turn, wherever it is.

import assert from "node:assert/strict";
import { test } from "node:test";

import { methods } from "@agentclientprotocol/sdk";

import { choose, Client } from "./support/client.mjs";
import { isThere, Signpost, untilNone, untilNoProcess } from "./support/processes.mjs";
import { calling, Sandbox } from "./support/sandbox.mjs";

/** Leaves a child, one of a session of its own, and one that ignores SIGTERM; each tells its id. */
const BROOD = `
setsid sh -c 'echo $$ > signpost; exec sleep 300' &
sh -c 'trap "" TERM; echo $$ > signpost; while :; do sleep 300; done' &
echo $$ > signpost
sleep 300
`;
const BROOD_SIZE = 3;

const ALLOWED = { settings: { permissions: { mode: "bypass" } } };

async function gone(pids) {
  await untilNone(() => pids.filter(isThere), "a process of the cancelled tool");
}

test("during a tool: its processes are gone, and the session goes on", async (t) => {
  const replies = [calling("Bash", { command: BROOD }, "toolu_1"), { text: "On again." }];
  const sandbox = await Sandbox.make(t, replies, ALLOWED);
  const signpost = new Signpost(sandbox);
  const client = await Client.start(sandbox);
  const { sessionId } = await client.open();
  const turn = client.prompt(sessionId, "Go.");
  const pids = await signpost.next(BROOD_SIZE);
  await client.agent.notify(methods.agent.session.cancel, { sessionId });
  assert.equal((await turn).stopReason, "cancelled");
  await gone(pids);
  assert.equal(client.call(sessionId, "toolu_1").status, "failed");
  assert.equal((await client.prompt(sessionId, "Go on.")).stopReason, "end_turn");
  const messages = JSON.stringify((await sandbox.requests()).at(-1).messages);
  assert.equal(messages.match(/"tool_result"/g).length, 1, "the call has its one result");
  await client.end();
  await untilNoProcess(sandbox);
});

test("by $/cancel_request: the prompt's own request", async (t) => {
  const replies = [calling("Bash", { command: BROOD }, "toolu_1"), { text: "On again." }];
  const sandbox = await Sandbox.make(t, replies, ALLOWED);
  const signpost = new Signpost(sandbox);
  const client = await Client.start(sandbox);
  const { sessionId } = await client.open();
  const abort = new AbortController();
  const turn = client.prompt(sessionId, "Go.", { cancellationSignal: abort.signal });
  const pids = await signpost.next(BROOD_SIZE);
  abort.abort();
  assert.equal((await turn).stopReason, "cancelled");
  await gone(pids);
  await client.end();
});

test("while the model is silent", async (t) => {
  const sandbox = await Sandbox.make(t, [{ text: ["Once ", "upon ", "a time"], silent_after: 700 }]);
  const client = await Client.start(sandbox);
  const { sessionId } = await client.open();
  const turn = client.prompt(sessionId, "Tell.");
  await client.untilTold(sessionId, "agent_message_chunk");
  await client.agent.notify(methods.agent.session.cancel, { sessionId });
  assert.equal((await turn).stopReason, "cancelled");
  await client.end();
});

test("while a question waits: it is withdrawn, and a late answer runs nothing", async (t) => {
  const sandbox = await Sandbox.make(t, [calling("Bash", { command: "touch made" }, "toolu_1"), { text: "On." }]);
  let answerNow;
  const answer = (question) => new Promise((resolve) => (answerNow = () => resolve(choose("allow_once")(question))));
  const client = await Client.start(sandbox, { answer });
  const { sessionId } = await client.open();
  const turn = client.prompt(sessionId, "Make it.");
  await client.until((happening) => happening.question);
  await client.agent.notify(methods.agent.session.cancel, { sessionId });
  assert.equal((await turn).stopReason, "cancelled");
  answerNow();
  assert.equal((await client.prompt(sessionId, "And?")).stopReason, "end_turn");
  assert.equal(client.call(sessionId, "toolu_1").status, "failed");
  await client.end();
});

test("where nothing runs it does nothing", async (t) => {
  const sandbox = await Sandbox.make(t, [{ text: "Yes." }]);
  const client = await Client.start(sandbox);
  const { sessionId } = await client.open();
  await client.agent.notify(methods.agent.session.cancel, { sessionId });
  await client.agent.notify(methods.agent.session.cancel, { sessionId: "of nobody" });
  assert.equal((await client.prompt(sessionId, "There?")).stopReason, "end_turn");
  await client.end();
});

test("a session with a turn is not closed before the turn is cancelled", async (t) => {
  const sandbox = await Sandbox.make(t, [calling("Bash", { command: BROOD }, "toolu_1")], ALLOWED);
  const signpost = new Signpost(sandbox);
  const client = await Client.start(sandbox);
  const { sessionId } = await client.open();
  const turn = client.prompt(sessionId, "Go.");
  await signpost.next(BROOD_SIZE);
  const close = () => client.agent.request(methods.agent.session.close, { sessionId });
  await assert.rejects(close(), (error) => {
    assert.equal(error.code, -32010);
    assert.deepEqual(error.data.reasons.map(({ kind }) => kind), ["prompt-active"]);
    return true;
  });
  await client.agent.notify(methods.agent.session.cancel, { sessionId });
  assert.equal((await turn).stopReason, "cancelled");
  await close();
  await client.end();
});
