// Decides who can have local workspaces. They run on the server's own machine; if nothing isolates them from the server, their users can do
// whatever the server can (docs/operating.md, "Local workspaces").
import { type Config, isUsedOnlyLocally, listSharedUseSettings } from "#base/config.ts";
import { forbidden } from "#base/errors.ts";
import type { Store } from "#db/engine/store.ts";
import { findUser } from "#db/users/users.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";

export const LOCAL_PROVISIONER = "local";

/** Returns why this server starts no local workspaces; undefined if it does. */
export const explainNoLocal = (config: Config): string | undefined => {
  if (config.database_url !== undefined) {
    return "Local workspaces are not available in a cluster: their processes run on one node, where other nodes can't reach them.";
  }
  return isUsedOnlyLocally(config) || config.allow_local_provisioner_off_loopback
    ? undefined
    : `Local workspaces are off, because this server can be reached from other machines (${listSharedUseSettings(config).join(", ")}). ` +
        "The setting allow_local_provisioner_off_loopback allows them.";
};

/** Returns whether a user with these site roles may have local workspaces and see templates for them. */
export const canHaveLocal = (config: Config, roles: readonly string[]): boolean =>
  config.allow_local_provisioner_for_members || config.local_workspace_user !== undefined || roles.includes("owner");

/** The people whose input a local workspace executes. */
export type People = {
  /** The workspace's owner. */
  readonly owner_id: string;
  /** The user who starts it and chooses parameters. */
  readonly initiator_id: string;
  /** The author of the version's scripts. */
  readonly author_id: string;
};

/** Rejects with 403 unless this server starts local workspaces and each of these people may have one. */
export const checkLocalStart = async (
  { store, config }: { store: Store; config: Config },
  { owner_id, initiator_id, author_id }: People,
): Promise<void> => {
  const reason = explainNoLocal(config);
  if (reason !== undefined) throw forbidden(reason);
  const canHave = (id: string): Promise<boolean> => canHaveLocalNow({ store, config }, id);
  // The server itself starts what schedules and presets require, and is the author of its built-in template.
  const canTakePart = async (id: string): Promise<boolean> => id === PREBUILDS_USER_ID || (await canHave(id));
  const hint = "The setting allow_local_provisioner_for_members allows it for everyone.";
  if (!(await canHave(owner_id))) {
    throw forbidden(`Only owners of the deployment can have local workspaces on this server. ${hint}`);
  }
  if (!(await canTakePart(initiator_id))) {
    throw forbidden(`Only owners of the deployment can start local workspaces on this server. ${hint}`);
  }
  if (!(await canTakePart(author_id))) {
    throw forbidden(
      `On this server, local workspaces start only from template versions that an owner created. ${hint}`,
    );
  }
};

/** Returns whether a user may have local workspaces now. */
export const canHaveLocalNow = async (
  { store, config }: { store: Store; config: Config },
  user_id: string,
): Promise<boolean> => canHaveLocal(config, (await store.get(findUser({ id: user_id })))?.roles ?? []);
