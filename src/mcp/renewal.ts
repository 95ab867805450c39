// A call of an MCP server that may have forgotten us: the specification asks for a new session on a 404, and the same call again, since the
// server has not run it (rule MC-11).
import type { McpConnection } from "./connection.ts";
import { McpError } from "./failure.ts";

/** `connect`: the open connection, or a new one where it is no longer open. Throws what `run` throws, the second time. */
export const callWithRenewal = async <T>(
  connect: () => Promise<McpConnection>,
  run: (connection: McpConnection) => Promise<T>,
): Promise<T> => {
  try {
    return await run(await connect());
  } catch (error) {
    if (!(error instanceof McpError) || error.kind !== "lost") throw error;
    return run(await connect());
  }
};
