// @agentclientprotocol/sdk: what a client can change in a session, and what it is told of changes.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { methods } from "@agentclientprotocol/sdk";

import { choose, Client } from "./support/client.mjs";
import { calling, Sandbox } from "./support/sandbox.mjs";

const { setConfigOption, setMode } = methods.agent.session;

/** A sandbox whose provider has two models. */
async function withTwoModels(t, replies) {
  const sandbox = await Sandbox.make(t, replies);
  const provider = sandbox.provider({ apiKeyEnv: "MY_KEY", models: { "some-model": {}, "other-model": {} } });
  const settings = { model: "mine/some-model", providers: { mine: provider } };
  await sandbox.write("home/.config/peri/settings.json", JSON.stringify(settings));
  return sandbox;
}

const option = (options, id) => options.find((option) => option.id === id);
const values = (option) => option.options.map(({ value }) => value);

test("options and modes are listed with what is in use", async (t) => {
  const sandbox = await withTwoModels(t, []);
  const client = await Client.start(sandbox);
  const { modes, configOptions } = await client.open();
  assert.equal(modes.currentModeId, "default");
  const names = ["default", "accept-edits", "bypass"];
  assert.deepEqual(modes.availableModes.map(({ id }) => id), names);
  assert.deepEqual(configOptions.map(({ id, category }) => [id, category]), [
    ["mode", "mode"],
    ["model", "model"],
    ["effort", "thought_level"],
  ]);
  assert.deepEqual([option(configOptions, "mode").currentValue, values(option(configOptions, "mode"))], ["default", names]);
  assert.equal(option(configOptions, "model").currentValue, "mine/some-model");
  assert.deepEqual(values(option(configOptions, "model")).sort(), ["mine/other-model", "mine/some-model"]);
  assert.deepEqual(values(option(configOptions, "effort")), ["default", "low", "medium", "high"]);
  await client.end();
});

test("another model answers the next prompt", async (t) => {
  const sandbox = await withTwoModels(t, [{ text: "One." }, { text: "Two." }]);
  const client = await Client.start(sandbox);
  const { sessionId } = await client.open();
  await client.prompt(sessionId, "First.");
  const change = { sessionId, configId: "model", value: "mine/other-model" };
  const { configOptions } = await client.agent.request(setConfigOption, change);
  assert.equal(option(configOptions, "model").currentValue, "mine/other-model");
  await client.prompt(sessionId, "Second.");
  assert.deepEqual((await sandbox.requests()).map(({ model }) => model), ["some-model", "other-model"]);
  await client.end();
});

test("another effort is in the next request", async (t) => {
  const sandbox = await withTwoModels(t, [{ text: "One." }, { text: "Two." }]);
  const client = await Client.start(sandbox);
  const { sessionId } = await client.open();
  await client.prompt(sessionId, "First.");
  await client.agent.request(setConfigOption, { sessionId, configId: "effort", value: "high" });
  await client.prompt(sessionId, "Second.");
  const [first, second] = await sandbox.requests();
  assert.equal(first.thinking, undefined);
  assert.notEqual(second.thinking, undefined);
  await client.end();
});

/** Turns on `bypass` by that request, and checks that nothing is asked any more. */
async function checkBypass(t, request) {
  const replies = [calling("Bash", { command: "touch made" }, "toolu_1"), { text: "Done." }];
  const sandbox = await withTwoModels(t, replies);
  const client = await Client.start(sandbox);
  const { sessionId } = await client.open();
  await request(client, sessionId);
  const update = await client.untilTold(sessionId, "current_mode_update");
  assert.equal(update.currentModeId, "bypass");
  const options = await client.untilTold(sessionId, "config_option_update");
  assert.equal(option(options.configOptions, "mode").currentValue, "bypass");
  await client.prompt(sessionId, "Make it.");
  assert.ok(existsSync(join(sandbox.work, "made")));
  await client.end();
}

test("a mode by set_mode, for clients that still use it", (t) =>
  checkBypass(t, (client, sessionId) => client.agent.request(setMode, { sessionId, modeId: "bypass" })));

test("a mode by set_config_option", (t) =>
  checkBypass(t, (client, sessionId) =>
    client.agent.request(setConfigOption, { sessionId, configId: "mode", value: "bypass" })));

test("a value that is not offered is an error, and nothing changes", async (t) => {
  const replies = [calling("Bash", { command: "touch made" }, "toolu_1"), { text: "Done." }];
  const sandbox = await withTwoModels(t, replies);
  const client = await Client.start(sandbox, { answer: choose("reject_once") });
  const { sessionId } = await client.open();
  const refused = (method, params) =>
    assert.rejects(client.agent.request(method, { sessionId, ...params }), (error) => error.code === -32602);
  await refused(setMode, { modeId: "root" });
  await refused(setConfigOption, { configId: "mode", value: "root" });
  await refused(setConfigOption, { configId: "colour", value: "red" });
  await refused(setConfigOption, { configId: "effort", type: "boolean", value: true });
  await refused(setConfigOption, { configId: "model", value: "no-provider" });
  await client.prompt(sessionId, "Make it.");
  assert.equal(client.questions.length, 1);
  await client.end();
});

test("the first prompt gives the session its title", async (t) => {
  const sandbox = await Sandbox.make(t, [{ text: "Hello." }]);
  const client = await Client.start(sandbox);
  const { sessionId } = await client.open();
  await client.prompt(sessionId, "Say hello to the world");
  const { title } = await client.untilTold(sessionId, "session_info_update", ({ title }) => Boolean(title));
  assert.match(title, /Say hello/);
  await client.end();
});

test("a notice comes as a notice to a client that knows them", async (t) => {
  const sandbox = await Sandbox.make(t, []);
  // An untrusted workspace whose settings only a trusted one may have.
  await sandbox.write("work/.peri/settings.json", JSON.stringify({ permissions: { allow: ["Bash"] } }));
  const client = await Client.start(sandbox, { capabilities: { session: { notices: {} } } });
  const { sessionId } = await client.open();
  const notice = await client.untilTold(sessionId, "notice");
  assert.match(JSON.stringify(notice), /trust/);
  await client.end();
});
