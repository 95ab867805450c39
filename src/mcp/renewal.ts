// Retries calls after an MCP server has forgotten the session. On a 404, which means that the server has not run the call, the
// specification requires a new session and the same call (rule MC-11).
import type { McpConnection } from "./connection.ts";
import { McpError } from "./failure.ts";

/** Runs the call, and again on a new connection if the session was lost. `connect` returns an open connection. Throws the last error. */
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
