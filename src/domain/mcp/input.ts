// Validates an MCP server entered by an administrator, field by field (facts/chats 5.5, rule MC-8). Pure.
import { type AppError, invalid, invalidField } from "#base/errors.ts";
import type { McpServerRow } from "#db/models/mcp-servers.ts";
import {
  MCP_AUTHS,
  MCP_AVAILABILITIES,
  MCP_TRANSPORTS,
  type McpOAuth,
  type UpdateMcpServer,
} from "#schema/chats/mcp-server.ts";

/** Double underscores would make the names of its tools ambiguous. */
const SLUG = /^[a-z0-9]+(?:[-_][a-z0-9]+)*$/;
const HEADER = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}$/;
const RESERVED = new Set([
  "host",
  "content-length",
  "content-type",
  "connection",
  "transfer-encoding",
  "mcp-session-id",
]);
const MAX_HEADERS_BYTES = 16_384;

export const parseSlug = (text: string): string => {
  if (SLUG.test(text) && text.length <= 32) return text;
  throw invalidField(
    "slug",
    "must be 1 to 32 lower-case letters and digits, with single dashes or underscores between",
  );
};

const parseWord = <const W extends readonly string[]>(words: W, field: string, text: string): W[number] => {
  const word = words.find((one) => one === text);
  if (word !== undefined) return word;
  throw invalidField(field, `must be one of ${words.join(", ")}`);
};

const parseUrl = (field: string, text: string): string => {
  const invalidUrl = (detail: string): AppError => invalidField(field, detail);
  const url = URL.canParse(text.trim()) ? new URL(text.trim()) : undefined;
  if (!url || (url.protocol !== "http:" && url.protocol !== "https:")) throw invalidUrl("must be an http or https URL");
  if (url.username !== "" || url.password !== "") throw invalidUrl("must not contain credentials");
  if (url.hash !== "") throw invalidUrl("must not have a fragment");
  return url.href;
};

const parseHeader = (field: string, name: string): string => {
  if (HEADER.test(name) && !RESERVED.has(name.toLowerCase())) return name;
  throw invalidField(field, `"${name.slice(0, 64)}" cannot be set as a header`);
};

const isValue = (text: string): boolean => /^[\x20-\x7e]*$/.test(text) && text.trim() === text;

export const parseHeaders = (headers: Readonly<Record<string, string>>): Record<string, string> => {
  const entries = Object.entries(headers).map(([name, value]) => {
    if (!isValue(value))
      throw invalidField("custom_headers", `the value of "${name.slice(0, 64)}" must be printable ASCII`);
    return [parseHeader("custom_headers", name), value] as const;
  });
  if (JSON.stringify(entries).length > MAX_HEADERS_BYTES) throw invalidField("custom_headers", "are too long");
  return Object.fromEntries(entries);
};

export const parseSecret = (field: string, text: string): string => {
  if (isValue(text)) return text;
  throw invalidField(field, "must be printable ASCII without blanks around it");
};

const parseOAuth = ({ client_id, auth_url, token_url, scopes }: McpOAuth): McpOAuth => {
  if (client_id.trim() === "") throw invalidField("oauth2.client_id", "must not be empty");
  return {
    client_id: client_id.trim(),
    scopes,
    auth_url: parseUrl("oauth2.auth_url", auth_url),
    token_url: parseUrl("oauth2.token_url", token_url),
  };
};

type Columns = Pick<
  McpServerRow,
  | "display_name"
  | "description"
  | "icon"
  | "url"
  | "transport"
  | "auth_type"
  | "api_key_header"
  | "oauth2"
  | "tool_allow_list"
  | "tool_deny_list"
  | "availability"
  | "enabled"
  | "model_intent"
  | "allow_in_plan_mode"
>;

/** Returns the columns after the change; omitted members are unchanged. */
export const toColumns = (before: Columns, input: UpdateMcpServer): Columns => {
  const text = (field: "display_name" | "description", fallback: string): string => input[field]?.trim() ?? fallback;
  const after: Columns = {
    display_name: text("display_name", before.display_name) || before.display_name,
    description: text("description", before.description),
    icon: input.icon === undefined ? before.icon : input.icon === "" ? "" : parseUrl("icon", input.icon),
    url: input.url === undefined ? before.url : parseUrl("url", input.url),
    transport:
      input.transport === undefined ? before.transport : parseWord(MCP_TRANSPORTS, "transport", input.transport),
    auth_type: input.auth_type === undefined ? before.auth_type : parseWord(MCP_AUTHS, "auth_type", input.auth_type),
    api_key_header:
      input.api_key_header === undefined
        ? before.api_key_header
        : parseHeader("api_key_header", input.api_key_header || "Authorization"),
    oauth2: input.oauth2 === undefined ? before.oauth2 : parseOAuth(input.oauth2),
    tool_allow_list: input.tool_allow_list ?? before.tool_allow_list,
    tool_deny_list: input.tool_deny_list ?? before.tool_deny_list,
    availability:
      input.availability === undefined
        ? before.availability
        : parseWord(MCP_AVAILABILITIES, "availability", input.availability),
    enabled: input.enabled ?? before.enabled,
    model_intent: input.model_intent ?? before.model_intent,
    allow_in_plan_mode: input.allow_in_plan_mode ?? before.allow_in_plan_mode,
  };
  if (after.auth_type === "oauth2" && !after.oauth2) {
    throw invalid("Validation failed.", [{ field: "oauth2", detail: "is required where people sign in" }]);
  }
  return after;
};
