// Revokes what was shared with a person in an organization they leave, so that they do not regain it when they return (rule SH-13).
import { listChatsSharedWith } from "#db/chats/shares.ts";
import { CommitError } from "#db/engine/store.ts";
import { findTemplate, listTemplatesGivenTo, setTemplateAccess } from "#db/templates/templates.ts";
import { listWorkspacesSharedWith } from "#db/workspaces/sharing.ts";
import type { DomainContext } from "../context.ts";
import { getGroupAcl } from "../templates/access-list.ts";

type Pair = { readonly organization_id: string; readonly user_id: string };
type Deps = Pick<DomainContext, "store" | "workspaces" | "chats" | "clock" | "topics">;

/** Maximum attempts while a template's access list changes concurrently; each one reads it again. */
const MAX_TRIES = 5;

/** Rejects when a share cannot be revoked: the caller adds the person only afterwards. */
export const endSharesWith = async (ctx: Deps, pair: Pair): Promise<void> => {
  const { organization_id, user_id } = pair;
  for (const { id } of await ctx.store.scan(listWorkspacesSharedWith(pair))) {
    await ctx.workspaces.ask(id, "edit", { type: "leave", user_id });
  }
  for (const { id } of await ctx.store.scan(listChatsSharedWith({ organization_id, subject: user_id }))) {
    await ctx.chats.ask(id, "share", { changes: [{ subject: user_id, kind: "user", role: null }] });
  }
  for (const { id } of await ctx.store.scan(listTemplatesGivenTo(pair))) await endTemplateShares(ctx, id, user_id);
};

const endTemplateShares = async ({ store, clock, topics }: Deps, id: string, user_id: string): Promise<void> => {
  for (let triesLeft = MAX_TRIES; ; triesLeft -= 1) {
    const template = await store.get(findTemplate({ id }));
    if (!template || !(user_id in template.user_acl)) return;
    const { [user_id]: _, ...user_acl } = template.user_acl;
    const group_acl = getGroupAcl(template);
    try {
      await store.commit([setTemplateAccess(template, { user_acl, group_acl, updated_at: clock.now() })]);
      topics.publish("shown_changed", id, {});
      return;
    } catch (error) {
      if (triesLeft <= 1 || !(error instanceof CommitError) || error.reason !== "stale") throw error;
    }
  }
};
