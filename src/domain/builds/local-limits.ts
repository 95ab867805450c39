// Stops local workspaces whose owners have lost the right to them. Local workspaces run as the server's own user, so the right must not
// outlive a role or a setting. Each startup and each sweep also stop workspaces that remain after a crash, a changed setting, or a start
// that was already in progress (rule LP-15).
import type { Service } from "#actors/runtime/service.ts";
import { AppError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { findBuild, listRunning } from "#db/workspaces/builds.ts";
import { findWorkspace, type WorkspaceRow } from "#db/workspaces/workspaces.ts";
import type { DomainContext } from "../context.ts";
import type { FormDeps } from "../template-versions/form.ts";
import { automaticBuilds } from "./automatic.ts";
import { canHaveLocal, checkLocalStart, explainNoLocal, LOCAL_PROVISIONER } from "./local-rule.ts";

type Deps = Pick<DomainContext, "store" | "config" | "workspaces" | "jobs" | "repositories" | "provisioners"> &
  FormDeps;

/** Selects the local workspaces of one owner, or all. */
type Selection = { readonly owner_id?: string; readonly atStart?: boolean };

/** Workspaces read per page. */
const PAGE_SIZE = 500;

/**
 * Stops running local workspaces that could not be started now. Resolves when the stops are queued; a failure to stop one is logged and does
 * not affect the others.
 */
export const stopForbiddenLocal = async (deps: Deps, { owner_id, atStart = false }: Selection = {}): Promise<void> => {
  // This runs every ten seconds, so nothing is searched where everyone may have local workspaces.
  if (explainNoLocal(deps.config) === undefined && canHaveLocal(deps.config, [])) return;
  // It also runs at every OpenID Connect sign-in.
  if (owner_id !== undefined && (await explainForbidden(deps, { owner_id })) === undefined) return;
  for (let after = ""; ; ) {
    const running = listRunning({ provisioner: LOCAL_PROVISIONER, after, limit: PAGE_SIZE });
    // At startup, blocking the event loop is harmless, and startup does not wait for a reader Worker.
    const rows = await (atStart ? deps.store.all(running) : deps.store.scan(running));
    for (const { id } of rows) {
      await stopIfForbidden(deps, id, owner_id).catch((error) => {
        log("workspaces").error("cannot stop the local workspace {id}: {error}", { id, error });
      });
    }
    const last = rows.at(-1);
    if (!last || rows.length < PAGE_SIZE) return;
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
  try {
    await deps.workspaces.ask(id, "createBuild", { build, after: last.id });
  } catch (error) {
    // A snapshot, for example, delays builds for minutes. The next sweep stops the workspace.
    await deps.provisioners.get(LOCAL_PROVISIONER)?.halt?.(id);
    throw error;
  }
};

/** Looks for forbidden local workspaces every ten seconds. */
export const makeLocalSweeps = (deps: Deps): Service => {
  let running: Promise<void> | undefined;
  return {
    runsOn: "one node",
    sweep: () => {
      running ??= stopForbiddenLocal(deps)
        .catch((error) => log("workspaces").error("local workspaces cannot be checked: {error}", { error }))
        .finally(() => {
          running = undefined;
        });
    },
    whenIdle: async () => running,
    stop: async () => running,
  };
};

/** Returns why a start by the owner would be rejected. */
const explainForbidden = (deps: Deps, { owner_id }: Pick<WorkspaceRow, "owner_id">): Promise<string | undefined> =>
  checkLocalStart(deps, { owner_id, initiator_id: owner_id, author_id: owner_id }).then(
    () => undefined,
    (error: Error) => (error instanceof AppError && error.detail) || error.message,
  );
