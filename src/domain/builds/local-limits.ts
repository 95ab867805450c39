// Stops local workspaces whose owners have lost the right to them. Local workspaces run as the server's own user, so the right must not
// outlive a role or a setting. Each startup also checks for those left by a crash or a changed setting (rule LP-15).
import { AppError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { findBuild, listRunning } from "#db/workspaces/builds.ts";
import { findWorkspace, type WorkspaceRow } from "#db/workspaces/workspaces.ts";
import type { DomainContext } from "../context.ts";
import type { FormDeps } from "../template-versions/form.ts";
import { automaticBuilds } from "./automatic.ts";
import { checkLocalStart, LOCAL_PROVISIONER } from "./local-rule.ts";

type Deps = Pick<DomainContext, "store" | "config" | "workspaces" | "jobs" | "repositories"> & FormDeps;

/** Workspaces read per page. */
const PAGE = 500;

/**
 * Stops running local workspaces that could not be started now: those of one owner, or all. Resolves when the stops are queued; a failure
 * to stop one is logged and does not affect the others.
 */
export const stopForbiddenLocal = async (deps: Deps, owner_id?: string): Promise<void> => {
  // This runs at every OpenID Connect sign-in, so nothing is searched for a user who may have local workspaces.
  if (owner_id !== undefined && (await explainForbidden(deps, { owner_id })) === undefined) return;
  for (let after = ""; ; ) {
    const running = listRunning({ provisioner: LOCAL_PROVISIONER, after, limit: PAGE });
    // At startup, blocking the event loop is harmless, and startup does not wait for a reader Worker.
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
  const why = await explainForbidden(deps, workspace);
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

/** Returns why a start by the owner would be rejected. */
const explainForbidden = (deps: Deps, { owner_id }: Pick<WorkspaceRow, "owner_id">): Promise<string | undefined> =>
  checkLocalStart(deps, { owner_id, initiator_id: owner_id, author_id: owner_id }).then(
    () => undefined,
    (error: Error) => (error instanceof AppError && error.detail) || error.message,
  );
