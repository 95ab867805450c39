// Finished builds and model calls with arbitrary times, written directly to the store. Needs a server in this process.
import { uuid } from "#base/ids.ts";
import { insertInto } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
import { jobs } from "#db/schema/jobs.ts";
import { model_spend } from "#db/schema/model-spend.ts";
import { workspace_builds } from "#db/schema/workspaces.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";

const insertJob = insertInto(jobs);
const insertBuild = insertInto(workspace_builds);
const insertSpent = insertInto(model_spend);

export type EndedBuild = {
  readonly workspace_id: string;
  readonly organization_id: string;
  readonly build_number: number;
  /** When the build ended, and its duration in milliseconds. */
  readonly at: number;
  readonly duration_ms: number;
  readonly outcome: "worked" | "failed" | "canceled";
  readonly transition: "start" | "stop";
  readonly isKeptReady?: boolean;
};

export const seedBuild = async (store: Store, build: EndedBuild): Promise<void> => {
  const { workspace_id, organization_id, build_number, at, duration_ms, outcome, transition, isKeptReady } = build;
  const job_id = uuid();
  const times = { created_at: at - duration_ms, updated_at: at };
  const key = await store.reserve("jobs", 1);
  await store.commit([
    insertJob({
      id: job_id,
      key,
      organization_id,
      initiator_id: uuid(),
      type: "workspace_build",
      provisioner: "echo",
      file_id: uuid(),
      input: {},
      error: outcome === "worked" ? "" : "no",
      started_at: at - duration_ms,
      completed_at: at,
      canceled_at: outcome === "canceled" ? at : null,
      ...times,
    }),
    insertBuild({
      id: uuid(),
      workspace_id,
      build_number,
      job_id,
      template_version_id: uuid(),
      transition,
      initiator_id: isKeptReady ? PREBUILDS_USER_ID : uuid(),
      reason: "initiator",
      ...times,
    }),
  ]);
};

export type Spend = typeof model_spend.$inferInsert;

export const seedSpend = (store: Store, rows: readonly Spend[]): Promise<unknown> =>
  store.commit(rows.map((row) => insertSpent(row)));

/** Returns a function that returns reproducible numbers smaller than `below`. */
export const createRandom = (seed: number) => {
  let state = seed >>> 0 || 1;
  return (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
};
