// @agentclientprotocol/sdk: what a prompt may hold besides text, and what the model gets of it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client } from "./support/client.mjs";
import { Sandbox } from "./support/sandbox.mjs";

/** One red pixel. */
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

/** Prompts with those blocks and gives the content of the message that the model got. */
async function asked(t, blocks) {
  const sandbox = await Sandbox.make(t, [{ text: "I see." }]);
  const client = await Client.start(sandbox);
  const { sessionId } = await client.open();
  const { stopReason } = await client.prompt(sessionId, blocks);
  assert.equal(stopReason, "end_turn");
  await client.end();
  const [{ messages }] = await sandbox.requests();
  assert.equal(messages.length, 1);
  return { content: messages[0].content, sandbox, sessionId };
}

test("an image", async (t) => {
  const blocks = [{ type: "text", text: "What is this?" }, { type: "image", mimeType: "image/png", data: PNG }];
  const { content } = await asked(t, blocks);
  const image = content.find((block) => block.type === "image");
  assert.deepEqual(image.source, { type: "base64", media_type: "image/png", data: PNG });
});

test("a resource that the client embeds", async (t) => {
  const resource = { uri: "file:///elsewhere/notes.md", mimeType: "text/markdown", text: "# The plan\nNothing yet." };
  const { content } = await asked(t, [{ type: "text", text: "Read." }, { type: "resource", resource }]);
  const text = content.map((block) => block.text).join("\n");
  assert.match(text, /file:\/\/\/elsewhere\/notes\.md/);
  assert.match(text, /# The plan\nNothing yet\./);
});

test("a link to a resource", async (t) => {
  const link = { type: "resource_link", uri: "file:///elsewhere/main.rs", name: "main.rs", mimeType: "text/x-rust" };
  const { content } = await asked(t, [{ type: "text", text: "Look at" }, link]);
  assert.match(content.map((block) => block.text).join("\n"), /file:\/\/\/elsewhere\/main\.rs/);
});

test("all of it in the order of the prompt, and again when the session is loaded", async (t) => {
  const blocks = [
    { type: "text", text: "First." },
    { type: "image", mimeType: "image/png", data: PNG },
    { type: "text", text: "Last." },
  ];
  const { content, sandbox, sessionId } = await asked(t, blocks);
  const kinds = content.map((block) => (block.type === "text" ? block.text : block.type));
  assert.deepEqual(kinds.filter((kind) => ["First.", "image", "Last."].includes(kind)), ["First.", "image", "Last."]);
  const later = await Client.start(sandbox);
  await later.agent.request("session/load", { sessionId, cwd: sandbox.work, mcpServers: [] });
  const told = later.updates(sessionId, "user_message_chunk").map(({ content }) => content);
  assert.deepEqual(told.map(({ type }) => type), ["text", "image", "text"]);
  assert.equal(told[1].data, PNG);
  await later.end();
});

test("a prompt of many megabytes arrives whole", async (t) => {
  const text = "0123456789abcdef".repeat(300_000);
  const { content } = await asked(t, [{ type: "text", text }]);
  assert.equal(content.find((block) => block.text?.length >= text.length)?.text.includes(text), true);
});
