// `slipway chat new TEXT`: starts a chat and prints the answer as it arrives. Ctrl-C interrupts the turn.
import { usageError } from "#base/usage-error.ts";
import type { CreateChat } from "#schema/chats/chat.ts";
import type { Client } from "#src/client.ts";
import { readArguments } from "../../arguments.ts";
import { VerbFailure } from "../../failure.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { getWorkspace } from "../workspaces/find.ts";
import { isAttended, parsePermissionPolicy } from "./approve-calls.ts";
import { getModel, readPrompt } from "./find.ts";
import { follow } from "./follow.ts";
import { parsePermissionMode } from "./mode.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, {
    values: ["workspace", "agent", "model", "mode", "permissions"],
    switches: ["no-wait"],
  });
  if (value.agent !== undefined && value.model !== undefined) throw usageError("--agent", "not with --model");
  if (value.agent !== undefined && value.workspace === undefined) throw usageError("--agent", "only with --workspace");
  const permissions = parsePermissionPolicy(value.permissions);
  const permission_mode = value.mode === undefined ? undefined : parsePermissionMode("--mode", value.mode);
  // If a user at the terminal can answer, the chat is interactive, like a chat that was started in the browser.
  const isInteractive = permissions === "ask" && !has.json && !has["no-wait"] && isAttended(input);
  return withServer("chat new", input, value, async (remote) => {
    const { client } = remote;
    const text = await readPrompt(input, words);
    const workspace = value.workspace === undefined ? undefined : await getWorkspace(client, value.workspace);
    const model = value.model === undefined ? undefined : await getModel(client, value.model);
    const chat = await client.post("/api/v2/chats", {
      organization_id: workspace?.organization_id ?? (await findOrganizationId(client)),
      content: [{ type: "text", text }],
      ...(isInteractive ? { client_type: "ui" } : {}),
      ...(workspace ? { workspace_id: workspace.id } : {}),
      ...(permission_mode === undefined ? {} : { permission_mode }),
      ...(value.agent === undefined ? {} : { coding_agent: value.agent }),
      ...(model === undefined ? {} : { model_config_id: model }),
    } satisfies CreateChat);
    if (has["no-wait"]) {
      input.print(has.json ? JSON.stringify(chat) : chat.id);
      return EXIT.ok;
    }
    remote.onInterrupt(() => interruptChat(client, chat.id));
    if (!has.json) input.printError(`Chat ${chat.id}\n`);
    const chat_id = chat.id;
    return follow(input, remote, {
      chat_id,
      after: 0,
      untilIdle: true,
      json: has.json,
      showsUsers: false,
      permissions,
    });
  });
};

/** Interrupts the turn. Existing messages are kept. */
export const interruptChat = async (client: Client, chat_id: string): Promise<void> => {
  await client.post(`/api/v2/chats/${chat_id}/interrupt`).catch(() => {});
};

const findOrganizationId = async (client: Client): Promise<string> => {
  const organizations = await client.get("/api/v2/users/me/organizations");
  const found = organizations.find(({ is_default }) => is_default) ?? organizations[0];
  if (!found) throw new VerbFailure("you can't start a chat because you don't belong to an organization");
  return found.id;
};
