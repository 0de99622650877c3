// Reads what the relay recorded. As a program, `node record.mjs RECORD..`, it judges records and fails with the findings.

import { readFileSync } from "node:fs";
import { argv } from "node:process";
import { fileURLToPath } from "node:url";

import { Judge } from "./schema.mjs";

/** The frames of a record, as `{from, frame}`. */
export function framesOf(record) {
  const lines = readFileSync(record, "utf8").split("\n").filter(Boolean);
  return lines.map((entry) => {
    const { from, line } = JSON.parse(entry);
    return { from, frame: JSON.parse(line) };
  });
}

/** What is wrong with the agent's frames of a record, and requests without an answer. */
export function judgeRecord(record) {
  const judge = new Judge();
  for (const { from, frame } of framesOf(record)) {
    if (from === "client") judge.fromClient(frame);
    else judge.fromAgent(frame);
  }
  return { findings: judge.findings, unanswered: judge.unanswered };
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  for (const record of argv.slice(2)) {
    const { findings, unanswered } = judgeRecord(record);
    const wrong = [...findings, ...unanswered.map((request) => `no answer to ${request}`)];
    if (wrong.length > 0) {
      console.error(`${record}:\n${wrong.join("\n")}`);
      process.exitCode = 1;
    }
  }
}
