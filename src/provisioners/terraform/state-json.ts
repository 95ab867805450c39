// Parses what Terraform prints and stores. Providers, and with an external worker another machine, decide what is in it.
import { type JsonLimits, tryParseJson } from "#base/json/read.ts";

/** Values of a plan or a state. One of the maximum size has fewer, unless it was made for this. */
export const TERRAFORM_LIMITS: JsonLimits = { maxValues: 1_000_000 };

/** Returns the members of a state; none if there is no state, or if it cannot be read. */
export const parseState = (state: string | null): Readonly<Record<string, unknown>> => {
  const value = tryParseJson(state ?? "{}", TERRAFORM_LIMITS);
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
};
