// A state that someone brings along instead of what a build has left: whether Terraform could go on from it, and whether it may take the
// place of the one that is there. Both as `terraform state push` sees it. Pure.
import { isBare, parseSerial, thingsIn } from "./session.ts";

/** The form that Terraform has written since 0.12, and OpenTofu from its beginning: all others are read here by nobody. */
const VERSION = 4;
/** Characters of a lineage, as workers tell it (src/provisioners/external/protocol.ts). */
const LINEAGE_LIMIT = 256;

type Loose = Readonly<Record<string, unknown>>;

/** Why Terraform could not go on from this text; undefined when it could. */
export const stateProblem = (text: string): string | undefined => {
  const state = parsed(text);
  if (!isObject(state)) return "must be a Terraform state, which is a JSON object";
  if ("encrypted_data" in state) return "must be an unencrypted state, so that the server can check its resources";
  const { version, lineage, serial, resources } = state;
  if (version !== VERSION) return `must be a Terraform state of version ${VERSION}`;
  if (typeof lineage !== "string" || lineage === "" || lineage.length > LINEAGE_LIMIT)
    return "must be a Terraform state with a lineage";
  if (!Number.isSafeInteger(serial) || (serial as number) < 0) return "must be a Terraform state with a serial";
  if (!Array.isArray(resources)) return "must be a Terraform state with a list of resources";
  const wrong = resources.findIndex((one) => !isResource(one));
  return wrong < 0 ? undefined : `must be a Terraform state: its resource ${wrong} is not valid`;
};

/**
 * Why this state may not take the place of the one before; undefined when it may. One of another lineage is most often another workspace's, an
 * older one forgets what was made since, and an empty one everything: anyone who means it says so.
 */
export const replaceProblem = (before: string | null, text: string): string | undefined => {
  if (text === "" && !isBare(before)) {
    const [first = "what is encrypted", ...more] = thingsIn(before);
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

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
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
