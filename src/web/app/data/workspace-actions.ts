// Actions on a workspace, with their messages. The live list shows the result.

import { h } from "preact";
import type { WorkspaceSummary } from "#schema/workspaces/workspace-watch.ts";
import { DeletionList } from "../parts/deletion-list.tsx";
import { confirmAction } from "../parts/dialog.tsx";
import { showToast } from "../shell/toasts.tsx";
import { call, Problem } from "./api.ts";
import { setName } from "./names.ts";
import { workspaces } from "./workspaces.ts";

type Target = Pick<WorkspaceSummary, "id" | "name" | "owner_name">;
type Values = readonly { name: string; value: string }[];

const toPath = ({ id, name, owner_name }: Target): { path: { workspace: string } } => {
  setName(id, `${owner_name}/${name}`);
  return { path: { workspace: id } };
};

export const startWorkspace = async (target: Target): Promise<void> => {
  await call("POST /workspaces/:workspace/builds", {
    ...toPath(target),
    body: { transition: "start", reason: "dashboard" },
  });
};

/** Starts the workspace because the user opens a part of it that requires it to run, unless they have disabled that. */
export const startOnConnect = async (target: Target): Promise<void> => {
  await call("POST /workspaces/:workspace/wake", { ...toPath(target), body: { reason: "dashboard" } }).catch(
    (error) => {
      if (!(error instanceof Problem) || (error.status !== 403 && error.status !== 409)) throw error;
    },
  );
};

export const stopWorkspace = async (target: Target): Promise<void> => {
  await call("POST /workspaces/:workspace/builds", {
    ...toPath(target),
    body: { transition: "stop", reason: "dashboard" },
  });
};

/** Starts or restarts the workspace with the template's active version. New parameters take their defaults; others keep their values. */
export const updateWorkspace = async (target: WorkspaceSummary, values?: Values): Promise<void> => {
  await call("POST /workspaces/:workspace/restart", {
    ...toPath(target),
    body: {
      template_version_id: target.template_active_version_id,
      reason: "dashboard",
      ...(values ? { rich_parameter_values: [...values] } : {}),
    },
  });
};

/** Restarts the workspace. The server performs both builds, even if the page is closed. */
export const restartWorkspace = async (target: Target): Promise<void> => {
  await call("POST /workspaces/:workspace/restart", { ...toPath(target), body: { reason: "dashboard" } });
};

const HOUR_MS = 3_600_000;
const MIN_REMAINING_MS = 31 * 60_000;

/** Extends the deadline by one hour, up to the template's limit. */
export const extendDeadline = async (target: WorkspaceSummary): Promise<void> => {
  if (!target.deadline) return;
  const maxMs = target.max_deadline ? Date.parse(target.max_deadline) : Number.POSITIVE_INFINITY;
  const requestedMs = Math.max(Date.parse(target.deadline) + HOUR_MS, Date.now() + MIN_REMAINING_MS);
  const deadline = new Date(Math.min(requestedMs, maxMs)).toISOString();
  await call("PUT /workspaces/:workspace/extend", { ...toPath(target), body: { deadline } });
  showToast(`Extended ${target.name}`);
};

export const togglePin = async (target: WorkspaceSummary): Promise<void> => {
  const { favorite } = target;
  // The live list reports no changes to favorites, so the row is changed here.
  await (favorite
    ? call("DELETE /workspaces/:workspace/favorite", toPath(target))
    : call("PUT /workspaces/:workspace/favorite", toPath(target)));
  const row = workspaces.value.get(target.id);
  if (row) workspaces.value = new Map(workspaces.value).set(target.id, { ...row, favorite: !favorite });
};

/** Activates a dormant workspace. */
export const activateWorkspace = async (target: Target): Promise<void> => {
  await call("PUT /workspaces/:workspace/dormant", { ...toPath(target), body: { dormant: false } });
};

export const cancelBuild = async (target: Pick<WorkspaceSummary, "build_id">): Promise<void> => {
  await call("PATCH /workspacebuilds/:workspacebuild/cancel", { path: { workspacebuild: target.build_id } });
};

/** Asks for confirmation (for one workspace by typing its name) and deletes. Calls `deleted` when the builds are created. */
export const deleteWorkspaces = (targets: readonly Target[], onDeleted?: () => void): void => {
  const [first] = targets;
  if (!first) return;
  const isOne = targets.length === 1;
  /** Workspaces that are not being deleted yet. */
  const listRemaining = (): readonly Target[] =>
    targets.filter(({ id }) => !["deleting", "deleted", undefined].includes(workspaces.value.get(id)?.status));
  const wereListed = listRemaining().length === targets.length;
  confirmAction({
    title: isOne ? `Delete ${first.name}?` : `Delete ${targets.length} workspaces?`,
    text: isOne
      ? h(DeletionList, { id: first.id })
      : `${targets.map(({ name }) => name).join(", ")}: their machines and shared ports are removed. Their files stay in the trash if their templates keep them. Their chats stay readable.`,
    confirmLabel: isOne ? "Delete workspace" : "Delete workspaces",
    cancelLabel: isOne ? "Keep it" : "Keep them",
    isDanger: true,
    confirmText: isOne ? first.name : String(targets.length),
    getDeletedMessage: () => {
      if (!wereListed || listRemaining().length > 0) return undefined;
      return isOne ? `${first.name} was deleted in the meantime` : "Already deleted";
    },
    act: async () => {
      await applyToEach(wereListed ? listRemaining() : targets, (one) =>
        call("POST /workspaces/:workspace/builds", {
          ...toPath(one),
          body: { transition: "delete", reason: "dashboard" },
        }),
      );
      onDeleted?.();
    },
  });
};

const MAX_CONCURRENT = 6;

/** Applies the action to many workspaces, a few at a time. Throws one error with the number of failures and the reason for the first. */
export const applyToEach = async <T extends Target>(
  targets: readonly T[],
  act: (one: T) => Promise<unknown>,
): Promise<void> => {
  const remaining = [...targets];
  const problems: unknown[] = [];
  const runWorker = async (): Promise<void> => {
    for (let one = remaining.shift(); one; one = remaining.shift()) {
      await act(one).catch((error) => problems.push(error));
    }
  };
  await Promise.all(Array.from({ length: MAX_CONCURRENT }, runWorker));
  const [first] = problems;
  if (problems.length === 0) return;
  if (targets.length === 1) throw first;
  throw new Error(`${problems.length} of ${targets.length} failed: ${first instanceof Error ? first.message : first}`);
};
