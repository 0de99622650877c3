// @agentclientprotocol/sdk: a provider's key that is missing.

import assert from "node:assert/strict";
import { test } from "node:test";

import { methods } from "@agentclientprotocol/sdk";

import { Client } from "./support/client.mjs";
import { Sandbox } from "./support/sandbox.mjs";

const AUTHENTICATION_REQUIRED = -32000;

const wantsAuthentication = (error) => {
  assert.equal(error.code, AUTHENTICATION_REQUIRED);
  assert.match(error.message, /MY_KEY/, "the error names what is missing");
  return true;
};

test("with the key nothing is to be done", async (t) => {
  const sandbox = await Sandbox.make(t, []);
  const client = await Client.start(sandbox);
  assert.deepEqual(client.initialized.authMethods ?? [], []);
  await client.open();
  await client.end();
});

test("without it a session wants authentication, which succeeds once the key is there", async (t) => {
  const sandbox = await Sandbox.make(t, [{ text: "Thank you." }]);
  delete sandbox.variables.MY_KEY;
  const client = await Client.start(sandbox);
  const [method, ...others] = client.initialized.authMethods;
  assert.deepEqual(others, []);
  assert.match(method.description, /MY_KEY/);
  const authenticate = () => client.agent.request(methods.agent.authenticate, { methodId: method.id });
  await assert.rejects(client.open(), wantsAuthentication);
  await assert.rejects(authenticate(), wantsAuthentication);

  // An endpoint that wants no key is one more way to have what is needed.
  const provider = sandbox.provider();
  const settings = { model: "mine/some-model", providers: { mine: provider } };
  await sandbox.write("home/.config/peri/settings.json", JSON.stringify(settings));
  await authenticate();
  const { sessionId } = await client.open();
  await client.prompt(sessionId, "There you are.");
  assert.equal(client.text(sessionId), "Thank you.");
  await client.end();
});

test("a method that is not offered is refused", async (t) => {
  const sandbox = await Sandbox.make(t, []);
  const client = await Client.start(sandbox);
  await assert.rejects(client.agent.request(methods.agent.authenticate, { methodId: "telepathy" }), { code: -32602 });
  await client.end();
});
