// A home, a workspace and a scripted model for one test, and nothing of the test's own environment but PATH.

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";

/** A variable that every process of a test inherits; its value names the test. */
export const MARK = "PERI_INTEROP_RUN";

/** The program that a variable of `cargo xtask interop` names. */
export function program(variable) {
  const path = process.env[variable];
  if (!path || !existsSync(path)) throw new Error(`${variable} names no program: run \`cargo xtask interop\``);
  return path;
}

/** One answer of the model that calls one tool. */
export function calling(name, input, id) {
  return { tool_calls: [{ ...(id && { id }), name, input }] };
}

export class Sandbox {
  mark = randomUUID();
  /** More variables for Peri. */
  variables = {};
  #endpoint;
  #ends = [];

  constructor(folder) {
    this.folder = folder;
    this.home = join(folder, "home");
    this.work = join(folder, "work");
  }

  /**
   * Makes one, with a model that gives these replies (the form is the scripted endpoint's), and removes it after the
   * test. `settings` are added to the user's.
   */
  static async make(t, replies, { choose = "in_order", settings = {} } = {}) {
    // Links resolved, as Peri names it.
    const sandbox = new Sandbox(await realpath(await mkdtemp(join(tmpdir(), "peri-interop-"))));
    t.after(() => sandbox.#end());
    await mkdir(sandbox.home);
    await mkdir(sandbox.work);
    await sandbox.#startModel({ choose, replies });
    const models = { model: "mine/some-model", providers: { mine: sandbox.provider({ apiKeyEnv: "MY_KEY" }) } };
    await sandbox.write("home/.config/peri/settings.json", JSON.stringify({ ...models, ...settings }));
    sandbox.variables.MY_KEY = "sk-interop";
    return sandbox;
  }

  /** A provider's settings that lead to the scripted model. */
  provider(more = {}) {
    return { protocol: "anthropic", baseUrl: this.modelUrl, ...more };
  }

  get environment() {
    const { PATH } = process.env;
    return { PATH, HOME: this.home, LC_ALL: "C.UTF-8", [MARK]: this.mark, ...this.variables };
  }

  async write(path, text) {
    const file = join(this.folder, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
    return file;
  }

  /** What the model was asked, oldest first. */
  async requests() {
    const log = await readFile(join(this.folder, "requests.jsonl"), "utf8");
    return log.split("\n").filter(Boolean).map((line) => JSON.parse(line).body);
  }

  async #startModel(script) {
    const path = await this.write("script.json", JSON.stringify(script));
    const options = ["--script", path, "--log", join(this.folder, "requests.jsonl")];
    this.#endpoint = spawn(program("PERI_SCRIPTED_ENDPOINT"), options, { stdio: ["pipe", "pipe", "inherit"] });
    const [port] = await once(createInterface({ input: this.#endpoint.stdout }), "line");
    this.modelUrl = `http://127.0.0.1:${port}`;
  }

  /** Has something done when the test is over, before the sandbox is removed: what began last is ended first. */
  atEnd(step) {
    this.#ends.unshift(step);
  }

  async #end() {
    for (const step of this.#ends) await step();
    if (this.#endpoint && this.#endpoint.exitCode === null) {
      const ended = once(this.#endpoint, "exit");
      this.#endpoint.stdin.end();
      await ended;
    }
    await rm(this.folder, { recursive: true, force: true });
  }
}
