/** How an MCP server is called by HTTP: the caller chooses which networks it reaches. */
export type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;
