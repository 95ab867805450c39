// Validates a state supplied by a person to replace the stored one: whether Terraform could continue from it, and whether it may replace
// the existing state. Both follow `terraform state push`. Pure.
import { tryParseJson } from "#base/json/read.ts";
import { isBare, listStateResources, parseSerial } from "./session.ts";
import { TERRAFORM_LIMITS } from "./state-json.ts";

/** The state format of Terraform since 0.12, and of all OpenTofu versions; no other is supported. */
const STATE_VERSION = 4;
/** Maximum characters of a lineage, as workers report it (src/provisioners/external/protocol.ts). */
const MAX_LINEAGE_CHARS = 256;

type Loose = Readonly<Record<string, unknown>>;

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
  const wrong = resources.findIndex((one) => !isResource(one));
  return wrong < 0 ? undefined : `must be a Terraform state: its resource ${wrong} is not valid`;
};

/**
 * Returns why this state may not replace the previous one; undefined if it may. A state of another lineage usually belongs to another
 * workspace, an older one loses later changes, and an empty one loses everything. Anyone who intends this has to confirm it.
 */
export const findReplaceProblem = (before: string | null, text: string): string | undefined => {
  if (text === "" && !isBare(before)) {
    const [first = "what is encrypted", ...more] = listStateResources(before);
    return `What is stored holds ${first}${more.length > 0 ? ` and ${more.length} more` : ""}, which nothing would ever remove after an empty state.`;
  }
  const [old, now] = [before === null ? undefined : parseSerial(before), parseSerial(text)];
  if (!old || !now || before === text) return undefined;
  if (old.lineage !== now.lineage)
    return `The state has the lineage ${now.lineage}, and what is stored has ${old.lineage}: it is another workspace's.`;
  if (now.serial < old.serial)
    return `The state has the serial ${now.serial}, and what is stored has ${old.serial}: it is older.`;
  return now.serial === old.serial
    ? `The state has the serial ${now.serial} of what is stored, but not its content: the serial of a changed state must be higher.`
    : undefined;
};

const isObject = (value: unknown): value is Loose =>
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
