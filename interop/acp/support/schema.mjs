// Judges a recorded connection by the JSON schema of ACP v1 that the protocol's own npm package ships.
//
// Two looks at every frame of the agent: the schema as it is, and the same schema closed, where a field that it does not
// know is a finding too (the schema lets anything pass there, and a misspelt field would be anything). `_meta` and what
// the schema leaves free stay free, and so do methods whose names begin with `_`: the specification gives them to
// extensions.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import Ajv from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

const require = createRequire(import.meta.url);
const sdk = require.resolve("@agentclientprotocol/sdk").replace(/dist\/.*$/, "");
const schema = JSON.parse(readFileSync(`${sdk}schema/v1/schema.json`, "utf8"));

const CLOSED = "~closed";
const COMPOSITIONS = ["allOf", "anyOf", "oneOf"];

/** True where a schema speaks of fields, so that there is something to close. */
function hasFields(part) {
  if (part === null || typeof part !== "object") return false;
  if (part.additionalProperties === true) return false;
  if (part.properties) return true;
  if (part.$ref) return hasFields(schema.$defs[part.$ref.slice("#/$defs/".length)]);
  return COMPOSITIONS.some((name) => part[name]?.some(hasFields));
}

/** The schema of a value: nothing but what it names may be in it. */
function closedValue(part) {
  if (part === null || typeof part !== "object") return part;
  const composed = closedParts(part);
  return hasFields(part) ? { ...composed, unevaluatedProperties: false } : composed;
}

/** A schema that is one part of a value's: its own values are closed, it is not, since other parts name fields too. */
function closedParts(part) {
  const result = { ...part };
  if (part.$ref) result.$ref = `${part.$ref}${CLOSED}`;
  if (part.properties) {
    result.properties = Object.fromEntries(
      Object.entries(part.properties).map(([name, value]) => [name, closedValue(value)]),
    );
  }
  if (part.items) result.items = closedValue(part.items);
  if (typeof part.additionalProperties === "object") {
    result.additionalProperties = closedValue(part.additionalProperties);
  }
  for (const name of COMPOSITIONS) {
    if (part[name]) result[name] = part[name].map(closedParts);
  }
  return result;
}

const definitions = { ...schema.$defs };
for (const [name, part] of Object.entries(schema.$defs)) {
  definitions[`${name}${CLOSED}`] = closedParts(part);
}

const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: true });
addFormats(ajv);
const whole = (least, most) => ({
  type: "number",
  validate: (value) => Number.isInteger(value) && value >= least && value <= most,
});
ajv.addFormat("uint16", whole(0, 0xffff));
ajv.addFormat("uint32", whole(0, 0xffff_ffff));
ajv.addFormat("uint64", whole(0, Number.MAX_SAFE_INTEGER));
ajv.addSchema({ $id: "acp", $defs: definitions });

/** The two looks at a type of the schema, by its name. */
const looks = new Map();

function looksAt(name) {
  if (!looks.has(name)) {
    const closing = hasFields(schema.$defs[name]) ? { unevaluatedProperties: false } : {};
    looks.set(name, {
      [name]: ajv.compile({ $ref: `acp#/$defs/${name}` }),
      [`closed ${name}`]: ajv.compile({ $ref: `acp#/$defs/${name}${CLOSED}`, ...closing }),
    });
  }
  return Object.entries(looks.get(name));
}

/** Findings about a value that should be of the type with that name. */
function checkType(name, value) {
  return looksAt(name).flatMap(([look, validate]) => {
    if (validate(value)) return [];
    const words = validate.errors.map(({ instancePath, message, params }) => {
      const field = params.unevaluatedProperty ? ` (\`${params.unevaluatedProperty}\`)` : "";
      return `${instancePath || "/"} ${message}${field}`;
    });
    return [`no ${look}: ${[...new Set(words)].slice(0, 6).join("; ")}`];
  });
}

/** `initialize` -> `InitializeResponse`, for the methods of a side. */
function typesByMethod(side, suffix) {
  const named = Object.entries(schema.$defs).filter(
    ([name, part]) => part["x-side"] === side && name.endsWith(suffix),
  );
  return new Map(named.map(([name, part]) => [part["x-method"], name]));
}

const RESULTS = typesByMethod("agent", "Response");
const REQUESTS = typesByMethod("client", "Request");
const NOTIFICATIONS = new Map([
  ...typesByMethod("client", "Notification"),
  ...typesByMethod("protocol", "Notification"),
]);

/** Members of a JSON-RPC message besides `jsonrpc`, for each kind. */
const MEMBERS = {
  request: ["id", "method", "params"],
  notification: ["method", "params"],
  response: ["id", "result", "error"],
};

function kindOf(frame) {
  if ("method" in frame) return "id" in frame ? "request" : "notification";
  return "response";
}

/** The checks that see one connection as a whole: which answer belongs to which request. */
export class Judge {
  /** Methods of requests of the client that are not answered yet, by id. */
  #waiting = new Map();
  findings = [];

  /** A frame that the client sent. It is not judged: other people's clients are not ours. */
  fromClient(frame) {
    for (const part of Array.isArray(frame) ? frame : [frame]) {
      if (part && typeof part === "object" && "method" in part && "id" in part) this.#waiting.set(part.id, part.method);
    }
  }

  /** A frame that the agent sent. */
  fromAgent(frame) {
    for (const finding of this.#check(frame)) {
      this.findings.push(`${finding}\n    in ${JSON.stringify(frame)?.slice(0, 2000)}`);
    }
  }

  /** Requests that have no answer, as `method (id)`. */
  get unanswered() {
    return [...this.#waiting].map(([id, method]) => `${method} (${JSON.stringify(id)})`);
  }

  #check(frame) {
    if (frame === null || typeof frame !== "object" || Array.isArray(frame)) return ["no JSON-RPC message"];
    const findings = frame.jsonrpc === "2.0" ? [] : ["`jsonrpc` is not \"2.0\""];
    const kind = kindOf(frame);
    const unknown = Object.keys(frame).filter((name) => name !== "jsonrpc" && !MEMBERS[kind].includes(name));
    findings.push(...unknown.map((name) => `a ${kind} has no member \`${name}\``));
    if (kind === "response") return [...findings, ...this.#checkResponse(frame)];
    const types = kind === "request" ? REQUESTS : NOTIFICATIONS;
    if (kind === "request") findings.push(...checkType("RequestId", frame.id));
    if (typeof frame.method !== "string") return [...findings, "the method is no string"];
    if (frame.method.startsWith("_")) return findings;
    const type = types.get(frame.method);
    return [...findings, ...(type ? checkType(type, frame.params) : [`no ${kind} of ACP: ${frame.method}`])];
  }

  #checkResponse(frame) {
    const findings = checkType("RequestId", frame.id);
    if ("result" in frame === "error" in frame) findings.push("a response has either `result` or `error`");
    const method = this.#waiting.get(frame.id);
    this.#waiting.delete(frame.id);
    if ("error" in frame) {
      findings.push(...checkType("Error", frame.error));
      // What could not be read has no id to answer.
      return method === undefined && frame.id !== null ? [...findings, "an answer to no request"] : findings;
    }
    if (method === undefined) return [...findings, "an answer to no request"];
    if (method.startsWith("_")) return findings;
    const type = RESULTS.get(method);
    return [...findings, ...(type ? checkType(type, frame.result) : [`a result for ${method}, which ACP does not have`])];
  }
}
