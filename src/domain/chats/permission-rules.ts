// Rules of permission that a client sends, checked before they are stored (rules PE-1 to PE-9).
import { invalid } from "#base/errors.ts";
import type { ChatPermissions } from "#schema/chat-permissions.ts";
import { isCommandPrefix } from "#src/tools/permission.ts";

const TOOL = /^[A-Za-z0-9_.-]*\*?$/;
export const COMMAND_PROBLEM =
  "must be one command of plain words: no variables, substitutions, redirections or operators";

/** The rules to store. 400 that names the rule and the field. */
export const permissionsOf = (given: ChatPermissions | null): ChatPermissions | null => {
  for (const [index, { tool, command }] of (given?.rules ?? []).entries()) {
    const wrong = (field: string, detail: string) =>
      invalid("Invalid permissions.", [{ field: `permissions.rules.${index}.${field}`, detail }]);
    if (tool === "" || !TOOL.test(tool)) throw wrong("tool", "must be a tool's name; only its end may be a *");
    if (command === undefined) continue;
    if (tool !== "execute") throw wrong("command", "is only for the tool execute");
    if (!isCommandPrefix(command)) throw wrong("command", COMMAND_PROBLEM);
  }
  return given;
};
