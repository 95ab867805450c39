// The names of MCP tools for models: the server's name, two underscores and the tool's name, in characters that every provider accepts
// (facts/chats 5.5, rule MC-2). Pure.
import { sha256 } from "#base/ids.ts";

const MAX_NAME_CHARS = 64;

/** Returns a name of at most 64 characters of A-Z, a-z, 0-9, _ and -. A shortened name ends in six digits of its digest. */
export const toOfferedName = (server: string, tool: string): string => {
  const fullName = `${server}__${tool}`;
  const plain = fullName.replace(/[^A-Za-z0-9_-]/g, "_");
  return plain.length <= MAX_NAME_CHARS
    ? plain
    : `${plain.slice(0, MAX_NAME_CHARS - 7)}_${sha256(fullName).slice(0, 6)}`;
};

/** Returns whether the lists allow a tool: an empty allowlist allows all, and the denylist takes precedence. */
export const isAllowed = (tool: string, allow: readonly string[], deny: readonly string[]): boolean =>
  (allow.length === 0 || allow.includes(tool)) && !deny.includes(tool);
