// Processes of a test: when they are there, and whether they are gone.

import { execFileSync } from "node:child_process";
import { constants, openSync, readdirSync, readFileSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as later } from "node:timers/promises";

import { MARK } from "./sandbox.mjs";

/** No process of Peri may be left so long after its client has gone, in milliseconds. */
const LIMIT = 2000;

/** The named pipe `signpost` in the workspace, to which a command of the test writes lines: an event where a file would be polled. */
export class Signpost {
  #lines;
  #socket;

  constructor(sandbox) {
    const path = join(sandbox.work, "signpost");
    execFileSync("mkfifo", [path]);
    // Open for both, so that it never ends between two writers.
    this.#socket = new Socket({ fd: openSync(path, constants.O_RDWR | constants.O_NONBLOCK), writable: false });
    this.#lines = createInterface({ input: this.#socket })[Symbol.asyncIterator]();
    sandbox.atEnd(() => this.#socket.destroy());
  }

  /** The next lines that are written to it. */
  async next(count = 1) {
    const lines = [];
    while (lines.length < count) lines.push((await this.#lines.next()).value);
    return lines;
  }
}

/** True while there is such a process, zombies left aside. */
export function isThere(pid) {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

/** Ids and command lines of processes that inherited the test's mark. */
export function processesOf(sandbox) {
  const variable = `${MARK}=${sandbox.mark}`;
  const read = (pid, name) => {
    try {
      return readFileSync(`/proc/${pid}/${name}`, "utf8");
    } catch {
      return "";
    }
  };
  return readdirSync("/proc")
    .filter((pid) => /^\d+$/.test(pid) && read(pid, "environ").split("\0").includes(variable))
    .map((pid) => `${pid} ${read(pid, "cmdline").replaceAll("\0", " ").trimEnd()}`);
}

/** Waits until `probe` gives an empty list; what is left at the limit is the error. */
export async function untilNone(probe, what, limit = LIMIT) {
  const deadline = performance.now() + limit;
  for (;;) {
    const left = probe();
    if (left.length === 0) return;
    if (performance.now() > deadline) throw new Error(`${limit} ms later there is ${what}: ${left.join("; ")}`);
    // There is no event for the end of a process that is not our child.
    await later(10);
  }
}

/** Waits until every process of the test is gone. */
export function untilNoProcess(sandbox) {
  return untilNone(() => processesOf(sandbox), "still");
}
