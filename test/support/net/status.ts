// The status that a call of the client was answered with.
import { ApiError } from "#src/client.ts";

/** 200 for every call that succeeds. Fails with whatever was no answer of the server. */
export const statusOf = async (call: Promise<unknown>): Promise<number> => {
  try {
    await call;
    return 200;
  } catch (error) {
    if (error instanceof ApiError) return error.status;
    throw error;
  }
};
