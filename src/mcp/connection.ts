// One connection to an MCP server by the official client package, which is loaded when the first is made. Knows tools and nothing else of
// the protocol; bounded in time, in what a server lists and in what a call answers (rules MC-1 to MC-4). Used by the server for the
// servers of an organization, and by the daemon for those of a workspace.
import type { Client, JsonSchemaValidator, jsonSchemaValidator, Transport } from "@modelcontextprotocol/client";
import type { Clock } from "#base/clock.ts";
import { VERSION } from "#base/version.ts";
import type { StoredTool } from "#schema/chats/chat-context.ts";
import { contentOf, type McpAnswer } from "./content.ts";

/** Milliseconds until a server that is being connected to, or a call, is given up (facts/chats 5.5). */
export const CONNECT_MS = 30_000;
export const CALL_MS = 60_000;
const MOST_TOOLS = 200;
const MOST_SCHEMA = 65_536;
const MOST_DESCRIPTION = 8_192;

/** The server cannot be reached, or does not keep to the protocol. Words for logs and people, without secrets. */
export class McpError extends Error {
  override readonly name = "McpError";
}

export class McpConnection {
  readonly #client: Client;
  /** By the names the server gives them. */
  readonly tools: readonly StoredTool[];
  #isOpen = true;

  private constructor(client: Client, tools: readonly StoredTool[]) {
    this.#client = client;
    this.tools = tools;
    client.onclose = () => {
      this.#isOpen = false;
    };
  }

  /** Connects and reads the list of tools. Throws McpError; then nothing is left open. */
  static async open(
    clock: Clock,
    makeTransport: () => Promise<Transport> | Transport,
    signal?: AbortSignal,
  ): Promise<McpConnection> {
    const late = new AbortController();
    const limit = clock.after(CONNECT_MS, () => late.abort());
    const ended = signal ? AbortSignal.any([late.signal, signal]) : late.signal;
    let client: Client | undefined;
    try {
      const { Client } = await import("@modelcontextprotocol/client");
      // What a server says of its results' shape is not compiled and run here.
      client = new Client({ name: "slipway", version: VERSION }, { capabilities: {}, jsonSchemaValidator: TRUSTING });
      const transport = await makeTransport();
      await before(ended, client.connect(transport, { timeout: CONNECT_MS, signal: ended }));
      const listed = await before(ended, client.listTools(undefined, { timeout: CONNECT_MS, signal: ended }));
      return new McpConnection(client, toolsIn(listed.tools));
    } catch (error) {
      void client?.close().catch(() => {});
      throw new McpError(late.signal.aborted ? `did not answer within ${CONNECT_MS / 1_000} s` : wordsOf(error));
    } finally {
      limit.cancel();
    }
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** What the tool answers. Throws McpError when the server does not, or the reason of the signal. */
  async call(name: string, args: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<McpAnswer> {
    try {
      const asked = this.#client.callTool({ name, arguments: { ...args } }, { timeout: CALL_MS, signal });
      return contentOf(await before(signal, asked));
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      throw new McpError(wordsOf(error));
    }
  }

  async close(): Promise<void> {
    this.#isOpen = false;
    await this.#client.close().catch(() => {});
  }
}

const TRUSTING: jsonSchemaValidator = {
  getValidator:
    <T>(): JsonSchemaValidator<T> =>
    (input) => ({ valid: true, data: input as T, errorMessage: undefined }),
};

/** The work, or the reason of the signal: some transports notice a signal late, and nobody waits for them. */
export const before = <T>(signal: AbortSignal, work: Promise<T>): Promise<T> => {
  const { promise, reject } = Promise.withResolvers<never>();
  const leave = (): void => reject(signal.reason);
  if (signal.aborted) leave();
  signal.addEventListener("abort", leave, { once: true });
  work.catch(() => {});
  return Promise.race([work, promise]).finally(() => signal.removeEventListener("abort", leave));
};

type Listed = { name: string; description?: string | undefined; inputSchema: unknown };

const toolsIn = (listed: readonly Listed[]): StoredTool[] =>
  listed.slice(0, MOST_TOOLS).flatMap(({ name, description = "", inputSchema }) => {
    const schema = inputSchema as Record<string, unknown>;
    if (name === "" || JSON.stringify(schema).length > MOST_SCHEMA) return [];
    const { $schema: _, ...input_schema } = schema;
    return [{ name, description: description.slice(0, MOST_DESCRIPTION), input_schema }];
  });

const MOST_WORDS = 500;

/** One line, without addresses that may carry a secret. */
const wordsOf = (error: unknown): string => {
  const text = answerOf(error) ?? (error instanceof Error ? error.message : String(error));
  return text
    .replace(/(https?:\/\/[^\s?#"']+)[?#][^\s"']*/g, "$1")
    .replace(/\s+/g, " ")
    .trim()
    .slice(0, MOST_WORDS);
};

/** What a server that answered something else than MCP said; its status where it said nothing. Undefined for what was no answer. */
const answerOf = (error: unknown): string | undefined => {
  const { data } = (typeof error === "object" && error !== null ? error : {}) as { readonly data?: unknown };
  const { status, text } = (typeof data === "object" && data !== null ? data : {}) as {
    readonly status?: unknown;
    readonly text?: unknown;
  };
  if (typeof status !== "number") return undefined;
  const said = typeof text === "string" ? saidIn(text.trim()) : "";
  return said === "" ? `it answered ${status}` : `it answered ${status}: ${said}`;
};

/** The message of an error in JSON; any other text as it is, but no page. */
const saidIn = (text: string): string => {
  if (text.startsWith("<")) return "";
  try {
    const { message, error } = JSON.parse(text) as { readonly message?: unknown; readonly error?: unknown };
    const inner = typeof error === "object" && error !== null ? (error as { message?: unknown }).message : error;
    return [message, inner].find((one) => typeof one === "string" && one !== "")?.toString() ?? text;
  } catch {
    return text;
  }
};
