// `slipway chat mode CHAT [MODE]`: shows or sets the permission mode of a chat. A change takes effect with the next tool call.
import { usageError } from "#base/usage-error.ts";
import { PERMISSION_MODES, type PermissionMode } from "#schema/chats/chat-permissions.ts";
import { readArguments } from "../../arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { selectChat } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, {});
  const [name, wanted, more] = words;
  if (more !== undefined) throw usageError("chat mode", `unexpected "${more}"; expected the chat and a mode`);
  const permission_mode = wanted === undefined ? undefined : parsePermissionMode("MODE", wanted);
  return withServer("chat mode", input, value, async ({ client }) => {
    const { id } = await selectChat(input, client, name);
    if (permission_mode !== undefined) await client.patch(`/api/v2/chats/${id}`, { permission_mode });
    const chat = await client.get(`/api/v2/chats/${id}`);
    input.print(has.json ? JSON.stringify(chat) : chat.permission_mode);
  });
};

/** Parses a mode with hyphens or underscores. Throws UsageError. */
export const parsePermissionMode = (flag: string, given: string): PermissionMode => {
  const found = PERMISSION_MODES.find((one) => one === given.toLowerCase().replaceAll("-", "_"));
  if (!found) throw usageError(flag, `expected ${PERMISSION_MODES.join(", ")}`);
  return found;
};
