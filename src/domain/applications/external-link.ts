// Creates the link of an external app with an API key (rule AX-18). A key gives access to its workspace, so only links declared by a
// template get one, only for the workspace's owner, and only for URL schemes an administrator allows.
import { forbidden, invalid, notFound } from "#base/errors.ts";
import { hasKeyPlaceholder, KEY_PLACEHOLDER, parseLinkTarget, withKey } from "#base/links/external-link.ts";
import { findAgent } from "#db/agents/agents.ts";
import { findAgentApp } from "#db/agents/named-apps.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { AgentAccessRow } from "../agents/find.ts";
import type { DomainContext } from "../context.ts";
import { createWorkspaceKey } from "../users/workspace-key.ts";

export type ExternalLink = { readonly url: string; readonly expires_at: string };

type Deps = Pick<DomainContext, "store" | "clock"> & {
  readonly config: { readonly external_app_schemes: readonly string[] };
};

/**
 * Creates a key for the workspace and returns the app's link with it. Rejects with 400 for a link without a placeholder and with 403 for
 * one that may not get a key.
 */
export const createExternalLink = async (
  ctx: Deps,
  caller: UserCaller,
  access: AgentAccessRow,
  slug: string,
): Promise<ExternalLink> => {
  const [agent, app] = await Promise.all([
    ctx.store.get(findAgent({ id: access.agent_id })),
    ctx.store.get(findAgentApp({ agent_id: access.agent_id, slug })),
  ]);
  if (!agent || !app) throw notFound();
  const target = parseLinkTarget(app.url);
  if (!hasKeyPlaceholder(app) || !target)
    throw invalid(`The link of the app "${slug}" has no placeholder for a key (${KEY_PLACEHOLDER}).`);
  if (agent.parent_id !== null) {
    throw forbidden("This app can't receive a key: a program in the workspace declared it, not the template.");
  }
  if (access.owner_id !== caller.user_id)
    throw forbidden("Only the owner of the workspace can open this app with a key.");
  const { scheme } = target;
  if (!ctx.config.external_app_schemes.includes(scheme)) {
    throw forbidden(
      `Links with the scheme "${scheme}" can't receive a key. An administrator can add the scheme to external_app_schemes.`,
    );
  }
  const { key, expires_at } = await createWorkspaceKey(ctx, caller, access, slug);
  return { url: withKey(app.url, key), expires_at };
};
