// A client on the protocol's own TypeScript SDK, connected to a `peri acp` of its own.
//
// Every frame of the agent is judged by the schema, whatever the test is about.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { PassThrough, Readable, Writable } from "node:stream";
import { createInterface } from "node:readline";

import { client as clientApp, methods, ndJsonStream, PROTOCOL_VERSION } from "@agentclientprotocol/sdk";

import { program } from "./sandbox.mjs";
import { Judge } from "./schema.mjs";

/** Answers a permission request by the option of that kind. */
export const choose = (kind) => (question) => {
  const option = question.options.find((option) => option.kind === kind);
  assert.ok(option, `an option ${kind} is offered: ${JSON.stringify(question.options)}`);
  return { outcome: { outcome: "selected", optionId: option.optionId } };
};

const NOT_ASKED = (question) => {
  throw new Error(`nobody expected to be asked: ${JSON.stringify(question)}`);
};

export class Client {
  /** `session/update`s as `{sessionId, update}`, in the order in which they came. */
  told = [];
  /** Permission requests, likewise. */
  questions = [];
  /** Notifications that are not ACP's own. */
  extensions = [];
  judge = new Judge();
  stderr = "";
  #waiting = new Set();
  #rubbish = [];

  /**
   * Starts Peri in the sandbox and initializes. `answer` gives the answer to a permission request, `fillIn` to a form.
   * `capabilities` are the client's, `meta` goes into `initialize`.
   */
  static async start(sandbox, { answer = NOT_ASKED, fillIn = NOT_ASKED, capabilities = {}, meta, args = ["acp"] } = {}) {
    const client = new Client();
    Object.assign(client, { answer, fillIn });
    client.#spawn(sandbox, args);
    sandbox.atEnd(() => client.#cleanUp());
    const params = { protocolVersion: PROTOCOL_VERSION, clientCapabilities: capabilities, ...(meta && { _meta: meta }) };
    client.initialized = await client.agent.request(methods.agent.initialize, params);
    return client;
  }

  #spawn(sandbox, args) {
    this.sandbox = sandbox;
    this.process = spawn(program("PERI_BIN"), args, { cwd: sandbox.work, env: sandbox.environment });
    this.exited = once(this.process, "close");
    this.process.stderr.setEncoding("utf8").on("data", (text) => (this.stderr += text));
    // A client that writes to an agent that has ended learns of it by the end of its output.
    this.process.stdin.on("error", () => {});
    const [judged, used] = [new PassThrough(), new PassThrough()];
    this.process.stdout.pipe(judged);
    this.process.stdout.pipe(used);
    createInterface({ input: judged }).on("line", (line) => this.#hear(line));
    const stream = ndJsonStream(Writable.toWeb(this.process.stdin), Readable.toWeb(used));
    const connection = clientApp({ name: "peri-interop" })
      .onRequest(methods.client.session.requestPermission, ({ params }) => {
        this.questions.push(params);
        this.#notice({ question: params });
        return this.answer(params);
      })
      .onNotification(methods.client.session.update, ({ params }) => {
        this.told.push(params);
        this.#notice(params);
      })
      .onRequest(methods.client.elicitation.create, ({ params }) => this.fillIn(params))
      .onNotification("*", ({ method, params }) => this.extensions.push({ method, params }))
      .connect({ readable: stream.readable, writable: this.#overheard(stream.writable) });
    this.connection = connection;
    this.agent = connection.agent;
  }

  /** The writable, with the judge told of what goes into it. */
  #overheard(writable) {
    const { readable, writable: tapped } = new TransformStream({
      transform: (frame, controller) => {
        this.judge.fromClient(frame);
        controller.enqueue(frame);
      },
    });
    readable.pipeTo(writable).catch(() => {});
    return tapped;
  }

  #hear(line) {
    let frame;
    try {
      frame = JSON.parse(line);
    } catch {
      this.#rubbish.push(line);
      return;
    }
    this.judge.fromAgent(frame);
  }

  #notice(happening) {
    for (const check of [...this.#waiting]) check(happening);
  }

  /** Waits for something that is told or asked; what came before counts too. */
  until(predicate) {
    const before = [...this.told, ...this.questions.map((question) => ({ question }))].find(predicate);
    if (before) return Promise.resolve(before);
    return new Promise((resolve) => {
      const check = (happening) => {
        if (!predicate(happening)) return;
        this.#waiting.delete(check);
        resolve(happening);
      };
      this.#waiting.add(check);
    });
  }

  /** Waits for an update of that type about the session. */
  async untilTold(sessionId, type, predicate = () => true) {
    const told = await this.until(
      (told) => told.sessionId === sessionId && told.update?.sessionUpdate === type && predicate(told.update),
    );
    return told.update;
  }

  /** Updates of a session, all or those of one type. */
  updates(sessionId, type) {
    const updates = this.told.filter((told) => told.sessionId === sessionId).map((told) => told.update);
    return type ? updates.filter((update) => update.sessionUpdate === type) : updates;
  }

  /** What the model said to the client in that session. */
  text(sessionId) {
    return this.updates(sessionId, "agent_message_chunk").map((update) => update.content.text).join("");
  }

  /** The call with that id as a client would show it: its announcement with all updates laid over it. */
  call(sessionId, toolCallId) {
    const parts = this.updates(sessionId).filter((update) => update.toolCallId === toolCallId);
    return Object.assign({}, ...parts);
  }

  /** A new session in the workspace; the whole answer. */
  open(params = {}) {
    return this.agent.request(methods.agent.session.new, { cwd: this.sandbox.work, mcpServers: [], ...params });
  }

  /** Prompts with a text or with blocks. */
  prompt(sessionId, prompt, options) {
    const blocks = typeof prompt === "string" ? [{ type: "text", text: prompt }] : prompt;
    return this.agent.request(methods.agent.session.prompt, { sessionId, prompt: blocks }, options);
  }

  /** Goes away as an editor does, and checks all that can be said of any connection. */
  async end({ unanswered = [] } = {}) {
    this.process.stdin.end();
    const [code, signal] = await this.exited;
    assert.deepEqual({ code, signal }, { code: 0, signal: null }, this.stderr);
    this.checkFrames();
    assert.deepEqual(this.judge.unanswered, unanswered);
  }

  /** Checks what was sent so far. */
  checkFrames() {
    assert.deepEqual(this.#rubbish, [], "standard output carries ACP only");
    assert.equal(this.judge.findings.length, 0, this.judge.findings.join("\n"));
    assert.doesNotMatch(this.stderr, /panicked/);
  }

  async #cleanUp() {
    if (this.process.exitCode === null && this.process.signalCode === null) this.process.kill("SIGKILL");
    await this.exited;
    this.connection.close();
  }
}
