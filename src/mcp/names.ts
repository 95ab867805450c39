// The names of MCP tools for models: the server's name, two underscores and the tool's, in characters that every provider accepts
// (facts/chats 5.5, rule MC-2). Pure.
import { sha256 } from "#base/ids.ts";

const LONGEST = 64;

/** Returns at most 64 of A-Z, a-z, 0-9, _ and -; a shortened name ends in six digits of its digest. */
export const offeredName = (server: string, tool: string): string => {
  const whole = `${server}__${tool}`;
  const plain = whole.replace(/[^A-Za-z0-9_-]/g, "_");
  return plain.length <= LONGEST ? plain : `${plain.slice(0, LONGEST - 7)}_${sha256(whole).slice(0, 6)}`;
};

/** True if the lists allow a tool: an empty allowlist allows all, and the denylist takes precedence. */
export const isAllowed = (tool: string, allow: readonly string[], deny: readonly string[]): boolean =>
  (allow.length === 0 || allow.includes(tool)) && !deny.includes(tool);
