// Validates permission rules from a client before they are stored (rules PE-1 to PE-9).

import { computeEditDistance } from "#base/config/suggest.ts";
import { invalid } from "#base/errors.ts";
import type { ChatPermissions, PermissionAction } from "#schema/chats/chat-permissions.ts";
import { isCommandPrefix } from "#src/tools/permission.ts";
import { isServerTool, listServerToolNames } from "#src/tools/registry.ts";

const TOOL_PATTERN = /^[A-Za-z0-9_.-]*\*?$/;
export const COMMAND_PROBLEM =
  "must be one command of plain words: no variables, substitutions, redirections or operators";

/** An allow rule with a misspelled name causes more approvals, never fewer. */
const isHarmlessIfMisspelled = (action: PermissionAction): boolean => action === "allow";

/**
 * Returns the tool that a name closely resembles: a misspelled deny rule would be stored but never match. Names that differ more may belong
 * to MCP servers or a client's own tools.
 */
const findMisspelling = (name: string): string | undefined => {
  if (name.endsWith("*") || name.includes("__") || isServerTool(name)) return undefined;
  return listServerToolNames().find((known) => computeEditDistance(name.toLowerCase(), known) <= MAX_EDIT_DISTANCE);
};
const MAX_EDIT_DISTANCE = 2;

/** Returns the rules to store. Rejects with 400 and names the rule and field. */
export const toPermissions = (given: ChatPermissions | null): ChatPermissions | null => {
  for (const [index, { tool, command, action }] of (given?.rules ?? []).entries()) {
    const invalidRule = (field: string, detail: string) =>
      invalid("Invalid permissions.", [{ field: `permissions.rules.${index}.${field}`, detail }]);
    if (tool === "" || !TOOL_PATTERN.test(tool))
      throw invalidRule("tool", "must be a tool's name; only its end may be a *");
    const suggestion = isHarmlessIfMisspelled(action) ? undefined : findMisspelling(tool);
    if (suggestion !== undefined) throw invalidRule("tool", `there is no tool ${tool}. Did you mean ${suggestion}?`);
    if (command === undefined) continue;
    if (tool !== "execute") throw invalidRule("command", "is only for the tool execute");
    if (!isCommandPrefix(command)) throw invalidRule("command", COMMAND_PROBLEM);
  }
  return given;
};
