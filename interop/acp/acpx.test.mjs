// acpx, a headless ACP client: single prompts, and sessions that its own background process keeps.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { STDIO } from "./support/mcp-server.mjs";
import { isThere, Signpost, untilNone, untilNoProcess } from "./support/processes.mjs";
import { framesOf, judgeRecord } from "./support/record.mjs";
import { calling, program, Sandbox } from "./support/sandbox.mjs";

const ACPX = join(createRequire(import.meta.url).resolve("acpx/package.json"), "../dist/cli.js");
const RELAY = fileURLToPath(new URL("support/relay.mjs", import.meta.url));

/** acpx in a sandbox, with everything between it and Peri recorded and judged at the end. */
class Acpx {
  constructor(sandbox) {
    this.sandbox = sandbox;
    this.record = join(sandbox.folder, "record.jsonl");
    this.agent = [process.execPath, RELAY, this.record, program("PERI_BIN"), "acp"].join(" ");
  }

  static async make(t, replies, options) {
    return new Acpx(await Sandbox.make(t, replies, options));
  }

  /** Runs it to its end: `{code, stdout, stderr}`. */
  async run(...words) {
    const { work: cwd, environment: env } = this.sandbox;
    const all = [ACPX, "--cwd", cwd, "--agent", this.agent, ...words];
    const child = spawn(process.execPath, all, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
    return { code, stdout, stderr, report: `acpx ${words.join(" ")}: ${code}\n${stdout}\n${stderr}` };
  }

  /** Runs it; it must end with this code. Gives what it printed. */
  async expect(code, ...words) {
    const run = await this.run(...words);
    assert.equal(run.code, code, run.report);
    return run.stdout;
  }

  succeed(...words) {
    return this.expect(0, ...words);
  }

  /** What the agent sent that passes `predicate`. */
  sent(predicate) {
    return framesOf(this.record).filter(({ from, frame }) => from === "agent" && predicate(frame)).map(({ frame }) => frame);
  }

  async judge() {
    await untilNoProcess(this.sandbox);
    assert.deepEqual(judgeRecord(this.record), { findings: [], unanswered: [] });
  }
}

/** acpx's exit code where a permission was refused. */
const DENIED = 5;

const MAKING = [calling("Bash", { command: "echo made > made; cat made" }, "toolu_1"), { text: "That is that." }];

test("one prompt with a tool that is approved", async (t) => {
  const acpx = await Acpx.make(t, MAKING);
  const trace = await acpx.succeed("--approve-all", "--format", "json", "exec", "Make it.");
  const frames = trace.split("\n").filter(Boolean).map((line) => JSON.parse(line));
  assert.ok(frames.some(({ method }) => method === "session/request_permission"), "it was asked");
  const ends = frames.filter(({ params }) => params?.update?.status === "completed");
  assert.deepEqual(ends.map(({ params }) => params.update.toolCallId), ["toolu_1"]);
  assert.equal(frames.at(-1).result.stopReason, "end_turn");
  assert.ok(existsSync(join(acpx.sandbox.work, "made")));
  await acpx.judge();
});

test("one prompt with a tool that is denied", async (t) => {
  const acpx = await Acpx.make(t, MAKING);
  const shown = await acpx.expect(DENIED, "--deny-all", "exec", "Make it.");
  assert.match(shown, /That is that\./);
  assert.ok(!existsSync(join(acpx.sandbox.work, "made")));
  const [end] = acpx.sent(({ params }) => params?.update?.status === "failed");
  assert.equal(end.params.update.toolCallId, "toolu_1");
  await acpx.judge();
});

test("reads pass and writes do not, as the client's own policy says", async (t) => {
  const write = { file_path: "new.txt", content: "x" };
  const replies = [calling("Read", { file_path: "a.txt" }, "toolu_1"), calling("Write", write, "toolu_2"), { text: "So." }];
  const acpx = await Acpx.make(t, replies);
  await acpx.sandbox.write("work/a.txt", "a");
  const options = ["--approve-reads", "--non-interactive-permissions", "deny", "--format", "quiet"];
  const quiet = await acpx.expect(DENIED, ...options, "exec", "Go.");
  assert.equal(quiet.trim(), "So.");
  assert.ok(!existsSync(join(acpx.sandbox.work, "new.txt")));
  await acpx.judge();
});

test("a model that fails is the client's error", async (t) => {
  const acpx = await Acpx.make(t, [{ status: 400, error: { type: "invalid_request_error", message: "the wrong quarter" } }]);
  const run = await acpx.run("exec", "Go.");
  assert.notEqual(run.code, 0, run.report);
  assert.match(run.stdout + run.stderr, /the wrong quarter/);
  await acpx.judge();
});

test("a session: several prompts, list, cancel during a tool, close", async (t) => {
  const replies = [
    { text: "One." },
    { text: "Two." },
    calling("Bash", { command: "echo $$ > signpost; sleep 300" }, "toolu_1"),
  ];
  const acpx = await Acpx.make(t, replies, { settings: { permissions: { mode: "bypass" } } });
  const signpost = new Signpost(acpx.sandbox);
  // What it keeps in the background must not outlive a test that fails.
  acpx.sandbox.atEnd(() => acpx.run("sessions", "close"));
  const id = (await acpx.succeed("--format", "quiet", "sessions", "new")).trim();
  assert.match(await acpx.succeed("prompt", "Count."), /One\./);
  assert.match(await acpx.succeed("prompt", "On."), /Two\./);
  assert.match(await acpx.succeed("sessions", "list"), new RegExp(`${id}.*Count`));
  const turn = acpx.run("--format", "json", "prompt", "Run it.");
  const pids = await signpost.next();
  await acpx.succeed("cancel");
  const { code, stdout, report } = await turn;
  assert.equal(code, 0, report);
  assert.match(stdout, /"stopReason":"cancelled"/);
  await untilNone(() => pids.filter(isThere), "the cancelled tool");
  await acpx.succeed("sessions", "close");
  await acpx.judge();
});

test("mode and effort of a session", async (t) => {
  const acpx = await Acpx.make(t, [{ text: "Hello." }, ...MAKING]);
  acpx.sandbox.atEnd(() => acpx.run("sessions", "close"));
  await acpx.succeed("sessions", "new");
  // From here on one connection is kept.
  await acpx.succeed("prompt", "Hello.");
  await acpx.succeed("set", "effort", "high");
  await acpx.succeed("set-mode", "bypass");
  await acpx.succeed("--deny-all", "prompt", "Make it.");
  assert.ok(existsSync(join(acpx.sandbox.work, "made")), "nobody was asked");
  const efforts = (await acpx.sandbox.requests()).map(({ thinking }) => thinking !== undefined);
  assert.deepEqual(efforts, [false, true, true]);
  await acpx.succeed("sessions", "close");
  await acpx.judge();
});

test("an MCP server of the client's configuration", async (t) => {
  const acpx = await Acpx.make(t, [calling("mcp__given__shout", { words: "hello" }, "toolu_1"), { text: "Done." }]);
  const mcpServers = [{ name: "given", type: "stdio", ...STDIO, env: [] }];
  const file = await acpx.sandbox.write("mcp.json", JSON.stringify({ mcpServers }));
  await acpx.succeed("--approve-all", "--mcp-config", file, "exec", "Shout.");
  const [end] = acpx.sent(({ params }) => params?.update?.status === "completed");
  assert.equal(end.params.update.content[0].content.text, "HELLO");
  await acpx.judge();
});

test("an image from a client's block file", async (t) => {
  const acpx = await Acpx.make(t, [{ text: "Seen." }]);
  const data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
  const blocks = [{ type: "text", text: "Look." }, { type: "image", mimeType: "image/png", data }];
  const file = await acpx.sandbox.write("prompt.json", JSON.stringify(blocks));
  assert.match(await acpx.succeed("exec", "--file", file), /Seen\./);
  const [{ messages }] = await acpx.sandbox.requests();
  assert.equal(messages[0].content.find(({ type }) => type === "image").source.data, data);
  await acpx.judge();
});
