// Builds the tools of a request: names and schemas that the receiver accepts, up to its limit, and a warning that names the server and tool
// for each omitted one. Pure.
import { sha256 } from "#base/ids.ts";
import type { PromptMessage, ToolDefinition } from "../model.ts";
import type { Receiver } from "./receivers.ts";
import { type RepairedSchema, repairSchema } from "./schema.ts";

type OfferedTool = {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
};

type Entry = OfferedTool & { readonly own: string; readonly repaired: RepairedSchema };

/** The tools that one request offers. */
export class RequestTools {
  readonly #byOwn: ReadonlyMap<string, Entry>;
  readonly #byName: ReadonlyMap<string, Entry>;
  readonly #receiver: Receiver;
  /** Omitted tools and the reasons, for the chat's users. */
  readonly warnings: readonly string[];

  constructor(receiver: Receiver, entries: readonly Entry[], warnings: readonly string[]) {
    this.#receiver = receiver;
    this.#byOwn = new Map(entries.map((one) => [one.own, one]));
    this.#byName = new Map(entries.map((one) => [one.name, one]));
    this.warnings = warnings;
  }

  get offered(): OfferedTool[] {
    return [...this.#byOwn.values()].map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
  }

  /** Returns the request's name for a tool; a tool that is no longer offered also gets a valid name. */
  getOfferedName(own: string): string {
    return this.#byOwn.get(own)?.name ?? toAcceptedName(own, this.#receiver);
  }

  /** Returns the tool's own name. */
  getOwnName(name: string): string {
    return this.#byName.get(name)?.own ?? name;
  }

  /** Converts the arguments of an earlier call to the names that the model uses. */
  toOfferedArgs(own: string, args: unknown): unknown {
    return this.#byOwn.get(own)?.repaired.toModel(args) ?? args;
  }

  /** Converts the arguments of the model's call to the names that the tool expects. */
  toOwnArgs(name: string, args: unknown): unknown {
    return this.#byName.get(name)?.repaired.fromModel(args) ?? args;
  }
}

/** Returns the tools to offer. `reserved` counts tools that the provider runs itself, by name. */
export const createRequestTools = (
  receiver: Receiver,
  tools: readonly ToolDefinition[],
  { messages, reserved }: { readonly messages: readonly PromptMessage[]; readonly reserved: readonly string[] },
): RequestTools => {
  const warnings: string[] = [];
  const names = new Set(reserved);
  const entries = new Map<ToolDefinition, Entry>();
  for (const tool of tools) {
    const repaired = getRepairedSchema(tool.input_schema);
    const name = toAcceptedName(tool.name, receiver);
    if (!repaired) warnings.push(`${describeTool(tool)} is left out: its input schema does not describe an object.`);
    else if (names.has(name)) warnings.push(`${describeTool(tool)} is left out: another tool has the same name.`);
    else {
      names.add(name);
      const { schema: inputSchema, note } = repaired;
      entries.set(tool, { own: tool.name, name, description: joinDescription(tool, note), inputSchema, repaired });
    }
  }
  const selected = selectMostRelevant([...entries.keys()], receiver.maxTools - reserved.length, messages);
  const dropped = [...entries.keys()].filter((tool) => !selected.has(tool));
  if (dropped.length > 0) warnings.push(describeDropped(dropped, receiver.maxTools));
  return new RequestTools(
    receiver,
    [...entries].flatMap(([tool, entry]) => (selected.has(tool) ? [entry] : [])),
    warnings,
  );
};

const joinDescription = ({ description }: ToolDefinition, note: string): string =>
  [typeof description === "string" ? description : "", note].filter(Boolean).join("\n");

const describeTool = ({ name, server }: ToolDefinition): string =>
  server === undefined ? `The tool "${name}"` : `The tool "${name}" of the MCP server "${server}"`;

const MAX_NAMED_TOOLS = 5;

const describeDropped = (dropped: readonly ToolDefinition[], limit: number): string => {
  const servers = [...new Set(dropped.flatMap(({ server }) => (server === undefined ? [] : [`"${server}"`])))];
  const serverNames =
    servers.length === 0 ? "" : ` of the MCP server${servers.length > 1 ? "s" : ""} ${servers.join(", ")}`;
  const names = dropped.slice(0, MAX_NAMED_TOOLS).map(({ name }) => name);
  const more = dropped.length > names.length ? ` and ${dropped.length - names.length} more` : "";
  return `The model accepts at most ${limit} tools. Left out${serverNames}: ${names.join(", ")}${more}.`;
};

const repairedSchemas = new WeakMap<object, { readonly repaired: RepairedSchema | undefined }>();

const getRepairedSchema = (schema: unknown): RepairedSchema | undefined => {
  if (typeof schema !== "object" || schema === null) return repairSchema(schema);
  const cachedEntry = repairedSchemas.get(schema) ?? { repaired: repairSchema(schema) };
  repairedSchemas.set(schema, cachedEntry);
  return cachedEntry.repaired;
};

/** Returns the name if the receiver accepts it, otherwise a valid one that ends in a digest. */
const toAcceptedName = (name: string, { toolName }: Receiver): string => {
  if (toolName.test(name)) return name;
  const sanitized = name.replace(/[^a-zA-Z0-9_-]/g, "_").replace(/^(?![a-zA-Z_])/, "_");
  return `${sanitized.slice(0, 57)}_${sha256(name).slice(0, 6)}`;
};

/**
 * Selects the most relevant tools: first Slipway's and the client's, then the ones that the chat has called, then the ones that share words
 * with the users' messages.
 */
const selectMostRelevant = (
  tools: readonly ToolDefinition[],
  limit: number,
  messages: readonly PromptMessage[],
): ReadonlySet<ToolDefinition> => {
  if (tools.length <= limit) return new Set(tools);
  const called = new Set(messages.flatMap(({ content }) => content.flatMap(({ tool_name }) => tool_name ?? [])));
  const words = toWordSet(
    messages
      .filter(({ role }) => role === "user")
      .slice(-3)
      .flatMap(({ content }) => content.map(({ text = "" }) => text))
      .join(" "),
  );
  const countSharedWords = (text: string): number => [...toWordSet(text)].filter((word) => words.has(word)).length;
  const scored = tools.map((tool) => {
    if (tool.server === undefined) return { tool, score: 2_000 };
    const score =
      (called.has(tool.name) ? 1_000 : 0) + 3 * countSharedWords(tool.name) + countSharedWords(tool.description);
    return { tool, score };
  });
  const ranked = scored.toSorted((one, other) => other.score - one.score).slice(0, Math.max(0, limit));
  return new Set(ranked.map(({ tool }) => tool));
};

const toWordSet = (text: unknown): ReadonlySet<string> =>
  new Set((typeof text === "string" ? text : "").toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) ?? []);
