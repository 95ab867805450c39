// The fields of a new workspace that no schema can check by itself (facts/platform 2.7, 3.1 and 3.2). Pure.
import { invalid, type Validation } from "#base/errors.ts";
import { type CreateWorkspace, NAME_PATTERN } from "#schema/workspace.ts";

const RESERVED = ["new", "create"];
const MINUTE = 60_000;
const LONGEST_TTL = 30 * 24 * 60 * MINUTE;
const name = new RegExp(NAME_PATTERN);

export type WorkspaceFields = {
  readonly name: string;
  readonly autostart_schedule: string | null;
  /** Null means the template's default. */
  readonly ttl_ms: number | null;
  readonly automatic_updates: "always" | "never";
};

/** The checked fields. Throws 400 with one validation entry for each broken one. */
export const workspaceFields = (body: CreateWorkspace): WorkspaceFields => {
  const validations: Validation[] = [];
  const note = (field: string, detail: string | undefined): void => {
    if (detail !== undefined) validations.push({ field, detail });
  };
  const schedule = body.autostart_schedule || null;
  const updates = body.automatic_updates || "never";
  note("name", nameProblem(body.name));
  note("schedule", schedule === null ? undefined : scheduleProblem(schedule));
  note("ttl_ms", body.ttl_ms ? ttlProblem(body.ttl_ms) : undefined);
  if (updates !== "always" && updates !== "never") note("automatic_updates", "must be always or never");
  if ((body.template_id === undefined) === (body.template_version_id === undefined)) {
    const detail = "exactly one of template_id and template_version_id must be given";
    note("template_id", detail);
    note("template_version_id", detail);
  }
  if (validations.length > 0) throw invalid("Validation failed.", validations);
  return {
    name: body.name,
    autostart_schedule: schedule,
    ttl_ms: body.ttl_ms ? Math.trunc(body.ttl_ms / MINUTE) * MINUTE : null,
    automatic_updates: updates as "always" | "never",
  };
};

/** Why this cannot be the name of a workspace; undefined when it can. */
export const nameProblem = (text: string): string | undefined => {
  if (text.length < 1 || text.length > 32) return "must have 1 to 32 characters";
  if (!name.test(text)) return "must be letters and digits in groups joined by single hyphens";
  return RESERVED.includes(text.toLowerCase()) ? "is reserved" : undefined;
};

/** Why this cannot be a time to live, in milliseconds; undefined when it can. */
const ttlProblem = (ttl: number): string | undefined => {
  if (!Number.isFinite(ttl) || ttl < MINUTE) return "must be at least one minute";
  return ttl > LONGEST_TTL ? "must be at most 30 days" : undefined;
};

/** Why this cannot be an autostart schedule; undefined when it can. */
const scheduleProblem = (text: string): string | undefined => {
  const match = /^(?:CRON_TZ=(\S+)\s+)?(.*)$/.exec(text.trim());
  const [zone, fields] = [match?.[1], (match?.[2] ?? "").split(/\s+/)];
  if (zone !== undefined && !isZone(zone)) return `"${zone}" is not a known time zone`;
  if (fields.length !== 5) return "must have the five fields minute, hour, day of month, month and day of week";
  if (fields[2] !== "*" || fields[3] !== "*") return "the day of month and the month must be *";
  try {
    return Bun.cron.parse(fields.join(" ")) === null ? "never comes" : undefined;
  } catch {
    return "is not a schedule such as CRON_TZ=Europe/Paris 30 9 * * 1-5";
  }
};

const isZone = (zone: string): boolean => {
  if (zone === "Local") return false;
  try {
    new Intl.DateTimeFormat("en", { timeZone: zone });
    return true;
  } catch {
    return false;
  }
};
