// Asks the user whether a workspace that is about to stop should keep running.
import type { WorkspaceSummary } from "#schema/workspaces/workspace-watch.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import * as actions from "../../data/workspace-actions.ts";
import { Button } from "../../parts/button.tsx";
import { formatDuration } from "../../parts/format-time.ts";
import { Icon } from "../../parts/icon.tsx";
import { now } from "../../parts/time.tsx";

/** Leaves enough time to notice the banner and decide. */
const WARNING_MS = 15 * 60_000;

export const AutostopWarning = ({ row }: { row: WorkspaceSummary }) => {
  const leftMs = row.deadline && row.status === "running" ? Date.parse(row.deadline) - now.value : undefined;
  return leftMs === undefined || leftMs > WARNING_MS ? null : <StopBanner row={row} leftMs={leftMs} />;
};

const StopBanner = ({ row, leftMs }: { row: WorkspaceSummary; leftMs: number }) => {
  const { state } = useResource(`activity ${row.id}`, () =>
    call("GET /workspaces/:workspace/activity", { path: { workspace: row.id } }),
  );
  const keptBy = state.value.data?.kept_by ?? [];
  const isLast = row.max_deadline !== undefined && row.max_deadline === row.deadline;
  return (
    <div class="banner attn" role="status">
      <span class="t-attn">
        <Icon name="clock" />
      </span>
      <span>
        {leftMs <= 0 ? "This workspace is about to stop." : `This workspace stops in ${formatDuration(leftMs)}.`}
        {keptBy.length > 0 && ` It still works: ${keptBy.join(", ")}.`}
        {isLast && " Its template requires the stop."}
      </span>
      {!isLast && (
        <span class="push line">
          <Button small onPress={() => actions.extendDeadline(row)}>
            Keep 1 h more
          </Button>
        </span>
      )}
    </div>
  );
};
