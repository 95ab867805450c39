// How a strict Go client parses a response (facts/wire 0 and 5): UUIDs and dates must be valid, durations are integers, lists are lists,
// and an optional UUID is a plain text or null. Used by go.test.ts.
import { isUuid } from "#base/ids.ts";
import type { Schema } from "#test/fuzz/operations.ts";

/** Fields that Go parses as UUIDs everywhere, except `id`; the document may omit the format. */
// biome-ignore format: a list
const UUIDS = new Set([
  "organization_id", "owner_id", "template_id", "template_version_id", "template_active_version_id", "active_version_id",
  "workspace_id", "workspace_owner_id", "build_id", "agent_id", "resource_id", "log_source_id", "workspace_agent_id", "job_id", "file_id",
  "user_id", "initiator_id", "created_by_id", "task_id", "parent_id", "subagent_id", "template_version_preset_id", "parent_chat_id",
  "root_chat_id", "last_model_config_id", "model_config_id", "app_id", "worker_id", "daemon_id", "key_id", "chat_id", "failing_agents",
  "organization_ids", "tailnet_id",
]);
/** Fields of a login key, whose IDs are ten letters. */
const NOT_UUID = /\.key_id$/;
const DATES = /(_at|^deadline|^max_deadline|^dormant_at|^last_used|^not_before)$/;
/** Durations: integers in any unit. */
const DURATIONS =
  /(^|_)(ttl|ttl_ms|timeout|timeout_ms|lifetime|lifetime_seconds|interval|bump_ms|max_token_lifetime|connection_timeout_seconds|age)$/;
const DATE = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;

/** Returns what a strict Go client would reject; empty for a valid response. */
export const findProblems = (value: unknown, schema: Schema | undefined, path = "$", name = ""): string[] => {
  const branches = schema?.anyOf?.flatMap((variant) => variant.anyOf ?? [variant]) ?? (schema ? [schema] : []);
  const hasBranch = (matches: (branch: Schema) => boolean): boolean => branches.some(matches);
  if (value === null) {
    const mustBeList = branches.length > 0 && branches.every(({ type }) => type === "array");
    return mustBeList ? [`${path} is null and not a list`] : [];
  }
  if (Array.isArray(value)) {
    const items = branches.find(({ type }) => type === "array")?.items;
    return value.flatMap((item, i) => findProblems(item, items, `${path}[${i}]`, name));
  }
  const isUuidField = UUIDS.has(name) && !NOT_UUID.test(path);
  if (typeof value === "object") {
    const object = value as Record<string, unknown>;
    if ("valid" in object && ("uuid" in object || "time" in object)) return [`${path} is {${Object.keys(object)}}`];
    return Object.entries(object).flatMap(([key, inner]) => {
      const property = branches.map(({ properties }) => properties?.[key]).find((schema) => schema !== undefined);
      const additional = branches
        .map(({ additionalProperties }) => additionalProperties)
        .find((schema) => typeof schema === "object");
      const memberSchema = property ?? (typeof additional === "object" ? additional : undefined);
      return findProblems(inner, memberSchema, `${path}.${key}`, property ? key : "");
    });
  }
  if (hasBranch(({ type }) => type === "array") && branches.length === 1) return [`${path} is not a list`];
  if (typeof value === "number") return DURATIONS.test(name) && !Number.isInteger(value) ? [`${path} is ${value}`] : [];
  if (typeof value !== "string") return [];
  const isUuidFormat =
    hasBranch(({ format }) => format === "uuid") &&
    !hasBranch(({ type, format }) => type === "string" && format !== "uuid");
  const isDateFormat =
    hasBranch(({ format }) => format === "date-time") &&
    !hasBranch(({ type, format }) => type === "string" && format !== "date-time");
  if ((isUuidField || isUuidFormat) && !isUuid(value)) return [`${path} is not a UUID: ${JSON.stringify(value)}`];
  if ((DATES.test(name) || isDateFormat) && !(DATE.test(value) && !Number.isNaN(Date.parse(value)))) {
    return [`${path} is not a date: ${JSON.stringify(value)}`];
  }
  return DURATIONS.test(name) && hasBranch(({ type }) => type === "integer") ? [`${path} is a text: ${value}`] : [];
};
