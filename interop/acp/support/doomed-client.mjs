// A client that is killed in the middle of a turn: it prompts, and waits for its end.

import { Client } from "./client.mjs";
import { Sandbox } from "./sandbox.mjs";

const [folder, mark, variables] = process.argv.slice(2);
const sandbox = new Sandbox(folder);
sandbox.mark = mark;
sandbox.variables = JSON.parse(variables);
const client = await Client.start(sandbox);
const { sessionId } = await client.open();
await client.prompt(sessionId, "Go.");
