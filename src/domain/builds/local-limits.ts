// Local workspaces run with the server's own user, so the right to one must not outlive a role or a setting: anyone who loses it has their
// running ones stopped, and each start looks for those that a crash or a new setting has left (rule LP-15).
import { AppError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { findBuild, listRunning } from "#db/workspaces/builds.ts";
import { findWorkspace, type WorkspaceRow } from "#db/workspaces/workspaces.ts";
import type { DomainContext } from "../context.ts";
import type { FormDeps } from "../template-versions/form.ts";
import { automaticBuilds } from "./automatic.ts";
import { LOCAL_PROVISIONER, mayStartLocal } from "./local-rule.ts";

type Deps = Pick<DomainContext, "store" | "config" | "workspaces" | "jobs" | "repositories"> & FormDeps;

/** Workspaces read at a time. */
const PAGE = 500;

/**
 * Stops the running local workspaces that could not be started now: those of one owner, or of everyone. Resolves when their stops are
 * queued; a workspace that cannot be stopped is logged and does not hold up the others.
 */
export const stopForbiddenLocal = async (deps: Deps, owner_id?: string): Promise<void> => {
  // At every sign-in by OpenID Connect, so nothing is searched for someone who may have them.
  if (owner_id !== undefined && (await whyForbidden(deps, { owner_id })) === undefined) return;
  for (let after = ""; ; ) {
    const running = listRunning({ provisioner: LOCAL_PROVISIONER, after, limit: PAGE });
    // At a start nobody waits for the event loop, and the start waits for no reader.
    const rows = await (owner_id === undefined ? deps.store.all(running) : deps.store.scan(running));
    for (const { id } of rows) {
      await stopIfForbidden(deps, id, owner_id).catch((error) => {
        log("workspaces").error("the local workspace {id} cannot be stopped: {error}", { id, error });
      });
    }
    const last = rows.at(-1);
    if (!last || rows.length < PAGE) return;
    after = last.id;
  }
};

const stopIfForbidden = async (deps: Deps, id: string, owner_id: string | undefined): Promise<void> => {
  const workspace = await deps.store.get(findWorkspace({ id }));
  if (!workspace || (owner_id !== undefined && workspace.owner_id !== owner_id)) return;
  const why = await whyForbidden(deps, workspace);
  if (why === undefined) return;
  const last = await deps.store.get(findBuild({ id: workspace.latest_build_id }));
  if (last?.transition !== "start") return;
  log("workspaces").warn("the local workspace {id} is stopped: {why}", { id, why });
  const build = await automaticBuilds(deps, deps.jobs).plan(workspace, last, {
    transition: "stop",
    reason: "autostop",
    initiator_id: workspace.owner_id,
  });
  await deps.workspaces.ask(id, "createBuild", { build, after: last.id });
};

/** What a start by its owner would be refused with. */
const whyForbidden = (deps: Deps, { owner_id }: Pick<WorkspaceRow, "owner_id">): Promise<string | undefined> =>
  mayStartLocal(deps, { owner_id, initiator_id: owner_id, author_id: owner_id }).then(
    () => undefined,
    (error: Error) => (error instanceof AppError && error.detail) || error.message,
  );
