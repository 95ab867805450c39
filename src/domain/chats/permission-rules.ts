// Validates permission rules from a client before they are stored (rules PE-1 to PE-9).

import { editDistance } from "#base/config/nearest.ts";
import { invalid } from "#base/errors.ts";
import type { ChatPermissions, PermissionAction } from "#schema/chats/chat-permissions.ts";
import { isCommandPrefix } from "#src/tools/permission.ts";
import { isServerTool, serverToolNames } from "#src/tools/registry.ts";

const TOOL = /^[A-Za-z0-9_.-]*\*?$/;
export const COMMAND_PROBLEM =
  "must be one command of plain words: no variables, substitutions, redirections or operators";

/** An allow rule with a misspelled name causes more approvals, never fewer. */
const isWider = (action: PermissionAction): boolean => action === "allow";

/**
 * Returns the tool that a name closely resembles: a misspelled deny rule would be stored but never match. Names that differ more may belong
 * to MCP servers or a client's own tools.
 */
const misspelt = (name: string): string | undefined => {
  if (name.endsWith("*") || name.includes("__") || isServerTool(name)) return undefined;
  return serverToolNames().find((known) => editDistance(name.toLowerCase(), known) <= MISSPELT);
};
const MISSPELT = 2;

/** Returns the rules to store. Rejects with 400 and names the rule and field. */
export const toPermissions = (given: ChatPermissions | null): ChatPermissions | null => {
  for (const [index, { tool, command, action }] of (given?.rules ?? []).entries()) {
    const wrong = (field: string, detail: string) =>
      invalid("Invalid permissions.", [{ field: `permissions.rules.${index}.${field}`, detail }]);
    if (tool === "" || !TOOL.test(tool)) throw wrong("tool", "must be a tool's name; only its end may be a *");
    const meant = isWider(action) ? undefined : misspelt(tool);
    if (meant !== undefined) throw wrong("tool", `there is no tool ${tool}. Did you mean ${meant}?`);
    if (command === undefined) continue;
    if (tool !== "execute") throw wrong("command", "is only for the tool execute");
    if (!isCommandPrefix(command)) throw wrong("command", COMMAND_PROBLEM);
  }
  return given;
};
