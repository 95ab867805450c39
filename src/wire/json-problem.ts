// Turns a problem with JSON from the other side of a connection into the connection's error.
import { JsonProblem } from "#base/json/read.ts";
import { WireError } from "./wire-error.ts";

/** `subject`: begins the message, such as "The answer". */
export const toWireProblem = (subject: string, error: unknown): WireError =>
  error instanceof JsonProblem
    ? new WireError(error.isTooLarge ? "too_large" : "protocol", `${subject} ${error.message}`, error)
    : new WireError("protocol", `${subject} cannot be read.`, error);
