// Parses Terraform's output and states with limits, because their content comes from providers and external workers.
import { type JsonLimits, JsonProblem, parseJson } from "#base/json/read.ts";
import { ProvisionError } from "../provisioner.ts";

/** Limits of a plan or a state. A plan contains each resource several times, and may have ten thousand resources. */
export const TERRAFORM_LIMITS: JsonLimits = { maxValues: 2_000_000, maxMembers: 100_000 };

/**
 * Returns the members of a state; an empty object if there is no state, or if the text is not a state. Throws ProvisionError for a state
 * with too many values, which must not be treated as empty.
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
