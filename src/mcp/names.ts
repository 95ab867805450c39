// The names under which tools of MCP servers are offered to models: the server's name, two underscores and the tool's, in characters that
// every provider takes (facts/chats 5.5, rule MC-2). Pure.
import { sha256 } from "#base/ids.ts";

const LONGEST = 64;

/** At most 64 of A-Z, a-z, 0-9, _ and -; a name that had to be cut ends in six digits of its digest. */
export const offeredName = (server: string, tool: string): string => {
  const whole = `${server}__${tool}`;
  const plain = whole.replace(/[^A-Za-z0-9_-]/g, "_");
  return plain.length <= LONGEST ? plain : `${plain.slice(0, LONGEST - 7)}_${sha256(whole).slice(0, 6)}`;
};

/** Whether the lists let a tool through: without an allow list all are allowed, and what is denied is denied. */
export const isAllowed = (tool: string, allow: readonly string[], deny: readonly string[]): boolean =>
  (allow.length === 0 || allow.includes(tool)) && !deny.includes(tool);
