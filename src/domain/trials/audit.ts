// Audit entries of trials: ways were tried, stopped, kept or discarded; prompts are never recorded. Forks, snapshots, builds and chats have
// entries of their own.
import type { Statement } from "#db/engine/sql.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import type { TrialRow } from "#db/trials/trials.ts";

type Operation = "try_ways" | "stop_ways" | "keep_way" | "discard_ways";

export const auditTrial = (
  { id, chat_id, organization_id, workspace_id, ways }: TrialRow,
  operation: Operation,
  now: number,
  way?: number,
): Statement =>
  insertAudit({
    now,
    action: "write",
    resource_type: "chat",
    resource_id: chat_id,
    target: chat_id.slice(0, 8),
    organization_id,
    workspace_id,
    before: {},
    after: {},
    additional: { operation, trial_id: id, ways: ways.length, ...(way === undefined ? {} : { way }) },
  });
