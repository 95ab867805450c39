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
const SPANS =
  /(^|_)(ttl|ttl_ms|timeout|timeout_ms|lifetime|lifetime_seconds|interval|bump_ms|max_token_lifetime|connection_timeout_seconds|age)$/;
const DATE = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;

/** Returns what such a client would reject; empty for a valid response. */
export const findProblems = (value: unknown, schema: Schema | undefined, at = "$", name = ""): string[] => {
  const branches = schema?.anyOf?.flatMap((one) => one.anyOf ?? [one]) ?? (schema ? [schema] : []);
  const has = (wanted: (one: Schema) => boolean): boolean => branches.some(wanted);
  if (value === null) {
    const mustBeList = branches.length > 0 && branches.every(({ type }) => type === "array");
    return mustBeList ? [`${at} is null and no list`] : [];
  }
  if (Array.isArray(value)) {
    const items = branches.find(({ type }) => type === "array")?.items;
    return value.flatMap((one, i) => findProblems(one, items, `${at}[${i}]`, name));
  }
  const isUuidField = UUIDS.has(name) && !NOT_UUID.test(at);
  if (typeof value === "object") {
    const shape = value as Record<string, unknown>;
    if ("valid" in shape && ("uuid" in shape || "time" in shape)) return [`${at} is {${Object.keys(shape)}}`];
    return Object.entries(shape).flatMap(([key, inner]) => {
      const property = branches.map(({ properties }) => properties?.[key]).find((one) => one !== undefined);
      const other = branches
        .map(({ additionalProperties }) => additionalProperties)
        .find((one) => typeof one === "object");
      const next = property ?? (typeof other === "object" ? other : undefined);
      return findProblems(inner, next, `${at}.${key}`, property ? key : "");
    });
  }
  if (has(({ type }) => type === "array") && branches.length === 1) return [`${at} is not a list`];
  if (typeof value === "number") return SPANS.test(name) && !Number.isInteger(value) ? [`${at} is ${value}`] : [];
  if (typeof value !== "string") return [];
  const onlyUuid =
    has(({ format }) => format === "uuid") && !has(({ type, format }) => type === "string" && format !== "uuid");
  const onlyDate =
    has(({ format }) => format === "date-time") &&
    !has(({ type, format }) => type === "string" && format !== "date-time");
  if ((isUuidField || onlyUuid) && !isUuid(value)) return [`${at} is no UUID: ${JSON.stringify(value)}`];
  if ((DATES.test(name) || onlyDate) && !(DATE.test(value) && !Number.isNaN(Date.parse(value)))) {
    return [`${at}is not a date: ${JSON.stringify(value)}`];
  }
  return SPANS.test(name) && has(({ type }) => type === "integer") ? [`${at} is a text: ${value}`] : [];
};
