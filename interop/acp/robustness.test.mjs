// What is left when a client goes without a word: nothing.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

import { methods } from "@agentclientprotocol/sdk";

import { Client } from "./support/client.mjs";
import { processesOf, Signpost, untilNoProcess } from "./support/processes.mjs";
import { calling, MARK, Sandbox } from "./support/sandbox.mjs";

const BROOD = `
setsid sh -c 'echo $$ > signpost; exec sleep 300' &
(sh -c 'echo $$ > signpost; exec sleep 300' &)
sh -c 'trap "" TERM; echo $$ > signpost; while :; do sleep 300; done' &
echo $$ > signpost
sleep 300
`;
const BROOD_SIZE = 4;

function brooding(t) {
  const replies = [calling("Bash", { command: BROOD }, "toolu_1"), { text: "Gone on." }];
  return Sandbox.make(t, replies, { settings: { permissions: { mode: "bypass" } } });
}

/** The session goes on where it was, and its call has a result. */
async function checkGoesOn(sandbox, sessionId) {
  const client = await Client.start(sandbox);
  await client.agent.request(methods.agent.session.load, { sessionId, cwd: sandbox.work, mcpServers: [] });
  const { stopReason } = await client.prompt(sessionId, "Go on.");
  assert.equal(stopReason, "end_turn");
  await client.end();
}

test("the client closes its end in the middle of a turn", async (t) => {
  const sandbox = await brooding(t);
  const signpost = new Signpost(sandbox);
  const client = await Client.start(sandbox);
  const { sessionId } = await client.open();
  const turn = client.prompt(sessionId, "Go.");
  await signpost.next(BROOD_SIZE);
  client.process.stdin.end();
  await untilNoProcess(sandbox);
  assert.deepEqual(await client.exited, [0, null], client.stderr);
  assert.equal((await turn).stopReason, "cancelled");
  client.checkFrames();
  await checkGoesOn(sandbox, sessionId);
});

test("the client is killed in the middle of a turn", async (t) => {
  const sandbox = await brooding(t);
  const signpost = new Signpost(sandbox);
  const script = fileURLToPath(new URL("support/doomed-client.mjs", import.meta.url));
  const words = [script, sandbox.folder, sandbox.mark, JSON.stringify(sandbox.variables)];
  const env = { ...process.env, [MARK]: sandbox.mark };
  const client = spawn(process.execPath, words, { env, stdio: ["ignore", "inherit", "inherit"] });
  const exited = once(client, "exit");
  await signpost.next(BROOD_SIZE);
  assert.ok(processesOf(sandbox).length > BROOD_SIZE);
  client.kill("SIGKILL");
  await exited;
  await untilNoProcess(sandbox);
  const later = await Client.start(sandbox);
  const { sessions } = await later.agent.request(methods.agent.session.list, { cwd: sandbox.work });
  assert.equal(sessions.length, 1);
  await later.end();
  await checkGoesOn(sandbox, sessions[0].sessionId);
});

test("Peri itself is killed in the middle of a turn", async (t) => {
  const sandbox = await brooding(t);
  const signpost = new Signpost(sandbox);
  const client = await Client.start(sandbox);
  const { sessionId } = await client.open();
  const turn = client.prompt(sessionId, "Go.").catch((error) => error);
  await signpost.next(BROOD_SIZE);
  client.process.kill("SIGKILL");
  await client.exited;
  await untilNoProcess(sandbox);
  assert.ok((await turn) instanceof Error, "the client learns that the turn has no answer");
  await checkGoesOn(sandbox, sessionId);
});

test("the client stops reading for good in the middle of an answer", async (t) => {
  const endless = { text: ["0123456789abcdef".repeat(64)], text_times: 20_000 };
  const sandbox = await Sandbox.make(t, [endless]);
  const client = await Client.start(sandbox);
  const { sessionId } = await client.open();
  client.prompt(sessionId, "Go.").catch(() => {});
  await client.untilTold(sessionId, "agent_message_chunk");
  client.process.stdout.destroy();
  await untilNoProcess(sandbox);
  client.checkFrames();
});

test("rubbish is answered, and the connection lives", async (t) => {
  const sandbox = await Sandbox.make(t, [{ text: "Still here." }]);
  const client = await Client.start(sandbox);
  const rubbish = ["{", "[]", "null", "\u0000", '{"jsonrpc":"2.0","id":"x","method":5}', "{}".repeat(1000)];
  for (const line of rubbish) client.process.stdin.write(`${line}\n`);
  const { sessionId } = await client.open();
  assert.equal((await client.prompt(sessionId, "There?")).stopReason, "end_turn");
  await client.end();
});
