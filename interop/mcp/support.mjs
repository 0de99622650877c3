// A home, a workspace, a scripted model and one run of `peri -p` in them.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";

/** The program or folder that a variable of `cargo xtask interop` names. */
export function place(variable) {
  const path = process.env[variable];
  if (!path || !existsSync(path)) throw new Error(`${variable} names nothing: run \`cargo xtask interop\``);
  return path;
}

/** A server that is an npm package's program. */
export const fromNode = (name, ...args) => ({ command: join(place("PERI_INTEROP_DIR"), "node_modules/.bin", name), args });

/** A server that is a Python package's program. */
export const fromPython = (name, ...args) => ({ command: join(place("PERI_INTEROP_DIR"), "venv/bin", name), args });

/** An answer of the model that calls tools: `[name, input]` each. */
export const calling = (...calls) => ({ tool_calls: calls.map(([name, input]) => ({ name, input })) });

export class Workspace {
  constructor(folder) {
    this.home = join(folder, "home");
    this.work = join(folder, "work");
    this.folder = folder;
  }

  /** Makes one, and removes it after the test. */
  static async make(t) {
    const workspace = new Workspace(await realpath(await mkdtemp(join(tmpdir(), "peri-mcp-"))));
    t.after(() => rm(workspace.folder, { recursive: true, force: true }));
    await mkdir(workspace.home);
    await mkdir(workspace.work);
    return workspace;
  }

  async write(path, text) {
    const file = join(this.folder, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  }

  /**
   * Runs one prompt with these servers, a model that gives these replies and everything of MCP servers allowed. Gives
   * the model's requests, the results of its calls in order, what Peri wrote, and its exit code.
   */
  async run(mcpServers, replies, settings = {}) {
    await this.write("script.json", JSON.stringify({ choose: "in_order", replies }));
    const log = join(this.folder, "requests.jsonl");
    const options = ["--script", join(this.folder, "script.json"), "--log", log];
    const endpoint = spawn(place("PERI_SCRIPTED_ENDPOINT"), options, { stdio: ["pipe", "pipe", "inherit"] });
    try {
      const [port] = await once(createInterface({ input: endpoint.stdout }), "line");
      const provider = { protocol: "anthropic", baseUrl: `http://127.0.0.1:${port}`, apiKeyEnv: "MY_KEY" };
      const allow = Object.keys(mcpServers).map((name) => `mcp__${name}`);
      const models = { model: "mine/some-model", providers: { mine: provider } };
      const all = { ...models, permissions: { allow }, mcpServers, ...settings };
      await this.write("home/.config/peri/settings.json", JSON.stringify(all));
      const seen = await this.#peri();
      const requests = (await readFile(log, "utf8")).split("\n").filter(Boolean).map((line) => JSON.parse(line).body);
      return { ...seen, requests, results: resultsOf(requests) };
    } finally {
      const ended = once(endpoint, "exit");
      endpoint.stdin.end();
      await ended;
    }
  }

  async #peri() {
    const env = { PATH: process.env.PATH, HOME: this.home, LC_ALL: "C.UTF-8", MY_KEY: "sk-interop" };
    const peri = spawn(place("PERI_BIN"), ["-p", "Go."], { cwd: this.work, env, stdio: ["ignore", "pipe", "pipe"] });
    let [stdout, stderr] = ["", ""];
    peri.stdout.setEncoding("utf8").on("data", (text) => (stdout += text));
    peri.stderr.setEncoding("utf8").on("data", (text) => (stderr += text));
    const [code] = await once(peri, "close");
    return { code, stdout, stderr };
  }
}

/** What the model was told of its calls, as `{text, isError}`. */
function resultsOf(requests) {
  const blocks = requests.at(-1).messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
  return blocks.filter(({ type }) => type === "tool_result").map(({ content, is_error: isError = false }) => {
    const parts = typeof content === "string" ? [{ text: content }] : content;
    return { text: parts.map(({ text = "" }) => text).join("\n"), isError };
  });
}
