// A small MCP server on the official SDK, for a client to give to Peri. As a program it speaks on standard streams.

import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { argv, env } from "node:process";
import { fileURLToPath } from "node:url";

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

/** A PNG of one pixel. */
export const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

function makeServer() {
  const server = new McpServer({ name: "interop", version: "1.0.0" });
  const text = (text) => ({ content: [{ type: "text", text }] });
  server.registerTool(
    "shout",
    { description: "Says it louder", inputSchema: { words: z.string() }, annotations: { readOnlyHint: true } },
    ({ words }) => text(words.toUpperCase()),
  );
  server.registerTool("secret", { description: "Tells a variable of its environment" }, () => text(env.SECRET ?? "none"));
  server.registerTool("picture", { description: "Shows a picture" }, () => ({
    content: [{ type: "image", mimeType: "image/png", data: PNG }],
  }));
  server.registerTool("fail", { description: "Fails" }, () => ({ ...text("it went wrong"), isError: true }));
  server.registerTool("ask", { description: "Asks the user for a colour" }, async () => {
    const requestedSchema = { type: "object", properties: { colour: { type: "string" } }, required: ["colour"] };
    const { action, content } = await server.server.elicitInput({ message: "Which colour?", requestedSchema });
    return text(action === "accept" ? `The user likes ${content.colour}.` : `The user's answer: ${action}`);
  });
  server.registerPrompt(
    "greet",
    { description: "Greets somebody", argsSchema: { name: z.string() } },
    ({ name }) => ({ messages: [{ role: "user", content: { type: "text", text: `Greet ${name} warmly.` } }] }),
  );
  return server;
}

/** Words that start it as a program. */
export const STDIO = { command: process.execPath, args: [fileURLToPath(import.meta.url)] };

/** Serves it over HTTP until the test is over: `{url, headers}`, with what the requests had for headers. */
export async function serveHttp(sandbox) {
  const transports = new Map();
  const seen = [];
  const http = createServer(async (request, response) => {
    seen.push(request.headers);
    const id = request.headers["mcp-session-id"];
    let transport = transports.get(id);
    if (!transport && id === undefined) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => transports.set(id, transport),
      });
      await makeServer().connect(transport);
    }
    if (transport) await transport.handleRequest(request, response);
    else response.writeHead(404).end();
  });
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  sandbox.atEnd(() => {
    http.closeAllConnections();
    http.close();
  });
  return { url: `http://127.0.0.1:${http.address().port}/mcp`, headers: seen };
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  await makeServer().connect(new StdioServerTransport());
}
