// The keeper's work on behalf of the owner, with the owner's current rights: prompts, diffs, checks and builds.
import type { TrialKeeperDeps } from "#actors/trials/keeper.ts";
import { forbidden } from "#base/errors.ts";
import { listPrompts } from "#db/chats/messages.ts";
import type { Store } from "#db/engine/store.ts";
import type { StoredWay, TrialRow } from "#db/trials/trials.ts";
import { findWorkspaceAccessRow } from "#db/workspaces/workspaces.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { canUseWorkspace } from "../access.ts";
import { createBuild, restoreBuild } from "../builds/create.ts";
import { admitUserPrompt } from "../chats/admission.ts";
import { loadOwnChat } from "../chats/find.ts";
import { toContent } from "../chats/input.ts";
import type { DomainContext } from "../context.ts";
import { loadCaller } from "../users/as-caller.ts";
import { checkWay, measureWay } from "./examine.ts";

type Work = Pick<TrialKeeperDeps, "deliver" | "measure" | "check" | "restore" | "remove">;

/** Returns what the keeper can do with the owner's rights. */
export const trialWork = (ctx: DomainContext): Work => ({
  deliver: (trial, way) => deliver(ctx, trial, way),
  measure: (trial, way, signal) => measureWay(ctx, trial, way, signal),
  check: (trial, way, signal) => checkWay(ctx, trial, way, signal),
  restore: async (trial, snapshot) => {
    await restoreBuild(ctx, trial.workspace_id, snapshot, await loadOwner(ctx.store, trial));
  },
  remove: async (trial, workspace_id) => {
    await createBuild(ctx, workspace_id, { transition: "delete" }, await loadOwner(ctx.store, trial));
  },
});

const loadOwner = async (store: Store, { owner_id }: TrialRow): Promise<UserCaller> => {
  const owner = await loadCaller(store, owner_id);
  if (owner) return owner;
  throw forbidden("The owner's account is suspended or was deleted.");
};

/** Sends the prompt as the owner, exactly once even if retried. */
const deliver = async (ctx: DomainContext, trial: TrialRow, way: StoredWay): Promise<number> => {
  const { store, chats } = ctx;
  const owner = await loadOwner(store, trial);
  const chat = await loadOwnChat(ctx, way.chat_id, owner);
  const workspace = await store.get(findWorkspaceAccessRow({ id: way.workspace_id }));
  if (!workspace || !canUseWorkspace(owner, workspace)) throw forbidden("You may not work in this workspace.");
  const request_key = { key: `trial ${trial.id} ${way.number}`, digest: "" };
  const behavior = "queue" as const;
  const typed = toContent([{ type: "text", text: way.prompt }]);
  const { content, custom_prompt } = await admitUserPrompt(ctx, chat, {
    content: typed,
    command: { type: "send", behavior },
    request_key,
  });
  const { model_config_id } = way;
  const { messages } = await chats.ask(chat.id, "send", {
    content,
    custom_prompt,
    created_by: owner.user_id,
    behavior,
    patch: model_config_id === null ? {} : { last_model_config_id: model_config_id },
    request_key,
    model_config_id,
    reasoning_effort: "",
  });
  const sent = messages.findLast(({ role }) => role === "user");
  if (sent) return sent.id;
  // The owner has sent a message there first: changes count from that message.
  const [newest] = await store.scan(listPrompts({ chat: chat.key, after: 0, limit: 1 }));
  return newest?.id ?? 0;
};
