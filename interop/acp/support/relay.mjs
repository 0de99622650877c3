// Stands between a client and Peri and records both directions: `node relay.mjs RECORD PROGRAM [ARGUMENT..]`.
//
// For clients that start their agent themselves. A line of the record is `{"from": "client" | "agent", "line": ..}`.

import { spawn } from "node:child_process";
import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [record, program, ...words] = process.argv.slice(2);
const agent = spawn(program, words, { stdio: ["pipe", "pipe", "inherit"] });

/** Passes lines on, each recorded before it arrives. */
function relay(from, input, output) {
  const lines = createInterface({ input });
  lines.on("line", (line) => {
    appendFileSync(record, `${JSON.stringify({ from, line })}\n`);
    output.write(`${line}\n`);
  });
  // Whoever is gone is noticed by the exit below.
  output.on("error", () => {});
  return lines;
}

relay("client", process.stdin, agent.stdin).on("close", () => agent.stdin.end());
const answers = relay("agent", agent.stdout, process.stdout);
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => agent.kill(signal));
agent.on("close", (code) => {
  answers.close();
  process.exit(code ?? 1);
});
