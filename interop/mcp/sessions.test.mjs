// The real binary with each server: what the model is offered, a call, an error, and servers that fail.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { test } from "node:test";

import { calling, fromNode, fromPython, Workspace } from "./support.mjs";

const DONE = { text: "Done." };

function check(result, isError, pattern) {
  assert.equal(result.isError, isError, result.text);
  assert.match(result.text, pattern);
}

const offered = ({ requests }) => requests[0].tools.map(({ name }) => name);

test("server-everything", async (t) => {
  const workspace = await Workspace.make(t);
  const calls = calling(["mcp__all__echo", { message: "ho 🦀" }], ["mcp__all__get-sum", { a: 1 }]);
  const run = await workspace.run({ all: fromNode("mcp-server-everything", "stdio") }, [calls, DONE]);
  assert.equal(run.code, 0, run.stderr);
  assert.ok(offered(run).includes("Read") && offered(run).includes("mcp__all__echo"));
  check(run.results[0], false, /ho 🦀/);
  check(run.results[1], true, /lacks `b`/);
});

test("server-filesystem", async (t) => {
  const workspace = await Workspace.make(t);
  await workspace.write("work/a.txt", "hello");
  const read = (path) => ["mcp__fs__read_text_file", { path }];
  const calls = calling(read(`${workspace.work}/a.txt`), read("/etc/hostname"));
  const run = await workspace.run({ fs: fromNode("mcp-server-filesystem", workspace.work) }, [calls, DONE]);
  assert.equal(run.code, 0, run.stderr);
  check(run.results[0], false, /hello/);
  check(run.results[1], true, /denied/);
});

test("mcp-server-git", async (t) => {
  const workspace = await Workspace.make(t);
  execFileSync("git", ["init", "--quiet"], { cwd: workspace.work });
  await workspace.write("work/new.txt", "new");
  const status = (repo_path) => ["mcp__git__git_status", { repo_path }];
  const server = fromPython("mcp-server-git", "--repository", workspace.work);
  const run = await workspace.run({ git: server }, [calling(status(workspace.work), status("/")), DONE]);
  assert.equal(run.code, 0, run.stderr);
  check(run.results[0], false, /new\.txt/);
  check(run.results[1], true, /./);
});

test("mcp-server-time", async (t) => {
  const workspace = await Workspace.make(t);
  const convert = (target_timezone) => [
    "mcp__time__convert_time",
    { source_timezone: "UTC", time: "12:00", target_timezone },
  ];
  const server = fromPython("mcp-server-time", "--local-timezone=UTC");
  const run = await workspace.run({ time: server }, [calling(convert("Asia/Tokyo"), convert("Middle/Earth")), DONE]);
  assert.equal(run.code, 0, run.stderr);
  check(run.results[0], false, /T21:00:00\+09:00/);
  check(run.results[1], true, /Middle\/Earth/);
});

test("servers that fail are each named, and the others go on", async (t) => {
  const workspace = await Workspace.make(t);
  const shell = (script) => ({ command: "sh", args: ["-c", script] });
  const servers = {
    absent: { command: "/no/such/program" },
    dead: shell("echo 'no paper' >&2; exit 3"),
    rubbish: shell("echo hello; exec sleep 0"),
    time: fromPython("mcp-server-time", "--local-timezone=UTC"),
  };
  const convert = ["mcp__time__convert_time", { source_timezone: "UTC", time: "12:00", target_timezone: "UTC" }];
  const run = await workspace.run(servers, [calling(convert), DONE]);
  assert.equal(run.code, 0, run.stderr);
  check(run.results[0], false, /12:00/);
  assert.match(run.stderr, /`absent`: cannot start \/no\/such\/program/);
  assert.match(run.stderr, /`dead` did not start: it ended with exit code 3.*no paper/);
  assert.match(run.stderr, /`rubbish` did not start: .*no message.*`hello`/);
});

test("tools beyond the budget are found and called by name", async (t) => {
  const workspace = await Workspace.make(t);
  const replies = [
    calling(["McpSearch", { query: "sum" }]),
    calling(["McpCall", { name: "mcp__all__get-sum", arguments: { a: 2, b: 40 } }]),
    DONE,
  ];
  const settings = { mcp: { toolSchemaBudgetBytes: 0 } };
  const run = await workspace.run({ all: fromNode("mcp-server-everything", "stdio") }, replies, settings);
  assert.equal(run.code, 0, run.stderr);
  assert.ok(offered(run).includes("McpSearch") && !offered(run).some((name) => name.startsWith("mcp__")));
  check(run.results[0], false, /mcp__all__get-sum/);
  check(run.results[1], false, /42/);
});

test("what no rule allows is not run where nobody can be asked", async (t) => {
  const workspace = await Workspace.make(t);
  const servers = { all: fromNode("mcp-server-everything", "stdio") };
  const replies = [calling(["mcp__all__echo", { message: "x" }]), DONE];
  const { results } = await workspace.run(servers, replies, { permissions: { allow: [] } });
  check(results[0], true, /mcp__all__echo/);
});

/** Server-everything over HTTP, on a port that was free a moment ago. */
async function everythingOverHttp(t) {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  const { command } = fromNode("mcp-server-everything");
  const server = spawn(command, ["streamableHttp"], { env: { ...process.env, PORT: String(port) }, stdio: ["ignore", "pipe", "pipe"] });
  t.after(async () => {
    const ended = once(server, "exit");
    server.kill();
    await ended;
  });
  await new Promise((resolve, reject) => {
    const listen = (text) => /listening|running/i.test(text) && resolve();
    server.stdout.setEncoding("utf8").on("data", listen);
    server.stderr.setEncoding("utf8").on("data", listen);
    server.on("exit", () => reject(new Error("server-everything has ended")));
  });
  return `http://127.0.0.1:${port}/mcp`;
}

test("server-everything over HTTP", async (t) => {
  const workspace = await Workspace.make(t);
  const url = await everythingOverHttp(t);
  const calls = calling(["mcp__all__echo", { message: "over HTTP" }]);
  const run = await workspace.run({ all: { type: "http", url } }, [calls, DONE]);
  assert.equal(run.code, 0, run.stderr);
  check(run.results[0], false, /over HTTP/);
});

/** Processes whose command line names the workspace's mark. */
function processesOf(mark) {
  const commands = readdirSync("/proc").filter((name) => /^\d+$/.test(name)).map((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8");
    } catch {
      return "";
    }
  });
  return commands.filter((command) => command.includes(mark));
}

test("no server is left when Peri has ended", async (t) => {
  const workspace = await Workspace.make(t);
  const mark = `${workspace.work}/left-by-nobody`;
  const { command, args } = fromNode("mcp-server-everything", "stdio");
  // It holds on to everything and starts what would outlive it.
  const script = `sh -c 'trap "" TERM HUP; sleep 600 # ${mark}' & exec "$0" "$@"`;
  const server = { command: "sh", args: ["-c", script, command, ...args] };
  const run = await workspace.run({ all: server }, [calling(["mcp__all__echo", { message: "x" }]), DONE]);
  assert.equal(run.code, 0, run.stderr);
  check(run.results[0], false, /x/);
  assert.deepEqual(processesOf(mark), []);
});

