// Audit log entries of tasks. The prompt is private to its owner: an entry only says that it changed.
import type { Statement } from "#db/engine/sql.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import type { TaskRow } from "#db/tasks/tasks.ts";

type Change = { readonly before?: TaskRow; readonly after?: TaskRow };

export const auditTask = ({ before, after }: Change, now: number): Statement[] => {
  const task = after ?? before;
  if (!task) return [];
  return [
    insertAudit({
      now,
      action: before ? (after ? "write" : "delete") : "create",
      resource_type: "task",
      resource_id: task.id,
      target: task.name,
      organization_id: task.organization_id,
      workspace_id: task.workspace_id,
      before,
      after,
    }),
  ];
};
