// Publicly reported problems with MCP servers. Each title names the reports.
import { expect, test } from "bun:test";
import { Server, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import { systemClock } from "#base/clock.ts";
import { McpPool } from "#src/mcp/pool.ts";

type Page = { readonly tools: readonly object[]; readonly nextCursor?: string };
type OddServer = {
  /** Returns the page of tools after this cursor. */
  readonly getPage: (cursor: string | undefined) => Page;
  readonly answer?: object;
};

const LIMITS = { silence_ms: 10_000, total_ms: 10_000 };
const neverAborted = new AbortController().signal;
const makeTool = (name: string, fields: object = {}): object => ({ name, inputSchema: { type: "object" }, ...fields });

/** Starts a server with these pages and this answer, and a pool that calls it. */
const openOddServer = ({ getPage, answer = { content: [] } }: OddServer) => {
  const requestedCursors: (string | undefined)[] = [];
  const makeServer = (): Server => {
    const server = new Server({ name: "odd", version: "1.0.0" }, { capabilities: { tools: {} } });
    server.setRequestHandler("tools/list", ({ params }) => {
      requestedCursors.push(params?.cursor);
      return getPage(params?.cursor) as never;
    });
    server.setRequestHandler("tools/call", () => answer as never);
    return server;
  };
  const httpServer = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const transport = new WebStandardStreamableHTTPServerTransport({});
      await makeServer().connect(transport);
      return transport.handleRequest(request);
    },
  });
  const pool = new McpPool({ clock: systemClock, fetch });
  const url = new URL(`http://127.0.0.1:${httpServer.port}/mcp`);
  const target = { key: url.href, url, kind: "http" as const, headers: {} };
  return {
    requestedCursors,
    listNames: async () => (await pool.connect(target)).tools.map(({ name }) => name),
    call: () => pool.call(async () => target, "get", {}, { signal: neverAborted, limits: LIMITS }),
    async [Symbol.asyncDispose]() {
      await pool.stop();
      await httpServer.stop(true);
    },
  };
};

test("[MC-3] vercel/ai#19240, github/copilot-cli#4006: tools beyond the first page are listed", async () => {
  await using odd = openOddServer({
    getPage: (cursor) =>
      cursor === undefined ? { tools: [makeTool("a")], nextCursor: "2" } : { tools: [makeTool("b")] },
  });
  expect(await odd.listNames()).toEqual(["a", "b"]);
});

test("[MC-15] DeusData/codebase-memory-mcp#1247: a repeated cursor ends the list, without duplicates", async () => {
  await using stuck = openOddServer({ getPage: () => ({ tools: [makeTool("a"), makeTool("b")], nextCursor: "same" }) });
  expect(await stuck.listNames()).toEqual(["a", "b"]);
  await using cyclic = openOddServer({
    getPage: (cursor) => ({ tools: [makeTool("a"), makeTool("b")], nextCursor: cursor === "x" ? "y" : "x" }),
  });
  expect(await cyclic.listNames()).toEqual(["a", "b"]);
  expect(cyclic.requestedCursors.length).toBeLessThan(5);
});

const toolWithSchema = {
  getPage: () => ({
    tools: [
      makeTool("get", { outputSchema: { type: "object", properties: { n: { type: "number" } }, required: ["n"] } }),
    ],
  }),
};

test("[MC-3] cyanheads/obsidian-mcp-server#108: structured content that does not match the tool's schema is accepted", async () => {
  const content = [{ type: "text", text: "three" }];
  await using odd = openOddServer({ ...toolWithSchema, answer: { content, structuredContent: { other: 3 } } });
  const { is_error, result } = await odd.call();
  expect([is_error, result.output]).toEqual([false, "three"]);
});

test("[MC-3] czlonkowski/n8n-mcp#343: an answer without the structured content that the schema requires is accepted", async () => {
  await using odd = openOddServer({ ...toolWithSchema, answer: { content: [{ type: "text", text: "three" }] } });
  const { is_error, result } = await odd.call();
  expect([is_error, result.output]).toEqual([false, "three"]);
});

test("[MC-3] cyanheads/git-mcp-server#40, HexSleeves/tailscale-mcp#101: the text of a failure is shown, whatever its structured content is", async () => {
  const content = [{ type: "text", text: "rejected: non-fast-forward" }];
  await using odd = openOddServer({
    ...toolWithSchema,
    answer: { isError: true, content, structuredContent: { code: 1 } },
  });
  const { is_error, result } = await odd.call();
  expect([is_error, result.error]).toEqual([true, "rejected: non-fast-forward"]);
});
