// The status of a client call.
import { ApiError } from "#src/client.ts";

/** Returns 200 for every successful call. Fails for errors that are not a response of the server. */
export const awaitStatus = async (call: Promise<unknown>): Promise<number> => {
  try {
    await call;
    return 200;
  } catch (error) {
    if (error instanceof ApiError) return error.status;
    throw error;
  }
};
