/** Calls an MCP server over HTTP. The caller decides which networks it may reach. */
export type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;
