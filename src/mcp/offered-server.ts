// An MCP server that offers tools to a coding agent: answers one message at a time, without state.

import type { Transport } from "@modelcontextprotocol/server";
import { parseJson } from "#base/json/read.ts";

type OfferedTool = { readonly name: string; readonly description: string; readonly input_schema: unknown };

type OfferedTools = {
  /** Returns the tools that can be called now. */
  list(): Promise<readonly OfferedTool[]>;
  /** Calls a tool. Never rejects: an error is a result with `is_error`. */
  call(name: string, args: unknown): Promise<{ readonly text: string; readonly is_error: boolean }>;
};

type Message = Parameters<NonNullable<Transport["onmessage"]>>[0];

/** Returns the answer to a JSON-RPC request, as JSON. */
export const answerMessage = async (tools: OfferedTools, version: string, message: string): Promise<string> => {
  const { Server } = await import("@modelcontextprotocol/server");
  const { promise, resolve } = Promise.withResolvers<string>();
  const transport: Transport = {
    start: async () => {},
    send: async (answer) => resolve(JSON.stringify(answer)),
    close: async () => {},
  };
  const server = new Server({ name: "slipway", version }, { capabilities: { tools: {} } });
  server.setRequestHandler("tools/list", async () => ({
    tools: (await tools.list()).map(({ name, description, input_schema }) => ({
      name,
      description,
      inputSchema: Object.assign({}, input_schema as object, { type: "object" as const }),
    })),
  }));
  server.setRequestHandler("tools/call", async ({ params }) => {
    const { text, is_error } = await tools.call(params.name, params.arguments ?? {});
    return { content: [{ type: "text" as const, text }], isError: is_error };
  });
  await server.connect(transport);
  transport.onmessage?.(parseJson(message) as Message);
  return promise;
};
