// Validates a state with which a person wants to replace the stored one. The checks are those of `terraform state push`. Pure.
import { tryParseJson } from "#base/json/read.ts";
import { isBare, listStateResources, parseSerial } from "./session.ts";
import { TERRAFORM_LIMITS } from "./state-json.ts";

/** The state format of Terraform since 0.12 and of all OpenTofu versions. */
const STATE_VERSION = 4;
/** Maximum characters of a lineage, as workers report it (src/provisioners/external/protocol.ts). */
export const MAX_LINEAGE_CHARS = 256;

type JsonObject = Readonly<Record<string, unknown>>;

/** Returns why Terraform could not continue from this text; undefined if it could. */
export const findStateProblem = (text: string): string | undefined => {
  const state = tryParseJson(text, TERRAFORM_LIMITS);
  if (!isObject(state)) return "must be a Terraform state, which is a JSON object";
  if ("encrypted_data" in state) return "must be an unencrypted state, so that the server can check its resources";
  const { version, lineage, serial, resources } = state;
  if (version !== STATE_VERSION) return `must be a Terraform state of version ${STATE_VERSION}`;
  if (typeof lineage !== "string" || lineage === "" || lineage.length > MAX_LINEAGE_CHARS)
    return "must be a Terraform state with a lineage";
  if (!Number.isSafeInteger(serial) || (serial as number) < 0) return "must be a Terraform state with a serial";
  if (!Array.isArray(resources)) return "must be a Terraform state with a list of resources";
  const invalidIndex = resources.findIndex((resource) => !isResource(resource));
  return invalidIndex < 0 ? undefined : `must be a Terraform state: its resource ${invalidIndex} is not valid`;
};

/**
 * Returns why the user must confirm that this state replaces the stored one; undefined if no confirmation is needed. A state of another
 * lineage usually belongs to another workspace, an older state loses later changes, and an empty state loses all resources.
 */
export const findReplaceProblem = (storedState: string | null, text: string): string | undefined => {
  if (text === "" && !isBare(storedState)) {
    const [first = "what is encrypted", ...more] = listStateResources(storedState);
    return `What is stored holds ${first}${more.length > 0 ? ` and ${more.length} more` : ""}, which nothing would ever remove after an empty state.`;
  }
  const [stored, pushed] = [storedState === null ? undefined : parseSerial(storedState), parseSerial(text)];
  if (!stored || !pushed || storedState === text) return undefined;
  if (stored.lineage !== pushed.lineage)
    return `The state has the lineage ${pushed.lineage}, and what is stored has ${stored.lineage}: it is another workspace's.`;
  if (pushed.serial < stored.serial)
    return `The state has the serial ${pushed.serial}, and what is stored has ${stored.serial}: it is older.`;
  return pushed.serial === stored.serial
    ? `The state has the serial ${pushed.serial} of what is stored, but not its content: the serial of a changed state must be higher.`
    : undefined;
};

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";

const isResource = (one: unknown): boolean =>
  isObject(one) &&
  (one.mode === "managed" || one.mode === "data") &&
  isText(one.type) &&
  isText(one.name) &&
  isText(one.provider) &&
  (one.module === undefined || isText(one.module)) &&
  Array.isArray(one.instances) &&
  one.instances.every(isObject);
