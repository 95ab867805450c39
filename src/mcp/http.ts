// The ways to an MCP server that is called by HTTP. Whoever calls says which `fetch` is used: the server's own keeps to the networks that
// may be called (rule MC-7), a workspace's is free.
import type { Transport } from "@modelcontextprotocol/client";

export type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

export type HttpWay = {
  readonly url: URL;
  /** sse: the older protocol with a stream and an address for messages. */
  readonly kind: "http" | "sse";
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: Fetch;
};

/** Redirects stay at the same origin or fail, so headers never reach another. */
export const httpTransport = async ({ url, kind, headers, fetch }: HttpWay): Promise<Transport> => {
  const { SSEClientTransport, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const options = { requestInit: { headers: { ...headers } }, fetch };
  return kind === "sse" ? new SSEClientTransport(url, options) : new StreamableHTTPClientTransport(url, options);
};
