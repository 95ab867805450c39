// Converts an error about JSON from a peer to a WireError.
import { JsonProblem } from "#base/json/read.ts";
import { WireError } from "./wire-error.ts";

/** Returns the error. `subject`: the subject of the message's sentence, such as "The answer". */
export const toWireProblem = (subject: string, error: unknown): WireError =>
  error instanceof JsonProblem
    ? new WireError(error.isTooLarge ? "too_large" : "protocol", `${subject} ${error.message}`, error)
    : new WireError("protocol", `${subject} cannot be read.`, error);
