// Parses what Terraform prints and stores. Providers, and with an external worker another machine, decide what is in it.
import { type JsonLimits, JsonProblem, parseJson } from "#base/json/read.ts";
import { ProvisionError } from "../provisioner.ts";

/** Of a plan or a state. A plan of ten thousand resources has each of them several times, with its values six to eight levels deep. */
export const TERRAFORM_LIMITS: JsonLimits = { maxValues: 2_000_000, maxMembers: 100_000 };

/**
 * Returns the members of a state; none if there is no state, or if it is not one. Throws ProvisionError for one with too many values, which
 * must not be taken for an empty one.
 */
export const parseState = (state: string | null): Readonly<Record<string, unknown>> => {
  const value = parse(state ?? "{}");
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
};

const parse = (state: string): unknown => {
  try {
    return parseJson(state, TERRAFORM_LIMITS);
  } catch (error) {
    if (!(error instanceof JsonProblem && error.isTooLarge)) return undefined;
    throw new ProvisionError(
      `The state ${error.message} Split the workspace's template into smaller ones.`,
      "",
      undefined,
      { cause: error },
    );
  }
};
