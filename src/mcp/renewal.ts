// Retries calls of an MCP server that may have forgotten the session: on a 404 the specification requires a new session and the same call
// again, which the server has not run (rule MC-11).
import type { McpConnection } from "./connection.ts";
import { McpError } from "./failure.ts";

/** `connect` returns the open connection, or a new one. Throws the second error of `run`. */
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
