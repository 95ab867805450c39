// Actions on all selected workspaces.
import type { WorkspaceSummary } from "#schema/workspaces/workspace-watch.ts";
import { canStart, canStop, isTransitional } from "../../data/states.ts";
import * as actions from "../../data/workspace-actions.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { showToast } from "../../shell/toasts.tsx";

export const BulkActions = ({
  rows,
  clearSelection,
}: {
  rows: readonly WorkspaceSummary[];
  clearSelection: () => void;
}) => {
  const runningCount = rows.filter(({ status }) => status === "running").length;
  const toStart = rows.filter(canStart);
  const toStop = rows.filter(canStop);
  const toUpdate = rows.filter((row) => row.outdated && !isTransitional(row));
  const runForAll = async (
    targets: readonly WorkspaceSummary[],
    act: (one: WorkspaceSummary) => Promise<unknown>,
    result: string,
  ) => {
    await actions.applyToEach(targets, act);
    showToast(`${targets.length === 1 ? targets[0]?.name : `${targets.length} workspaces`} ${result}`);
    clearSelection();
  };
  return (
    <div class="bulk" role="toolbar" aria-label="Selected workspaces">
      <span class="med num">{rows.length} selected</span>
      {runningCount > 0 && <span class="dim small desk">{runningCount} running</span>}
      <Button
        look="ghost"
        icon="play"
        disabled={toStart.length === 0}
        onPress={() => runForAll(toStart, actions.startWorkspace, "start")}
      >
        Start
      </Button>
      <Button
        look="ghost"
        icon="stop"
        disabled={toStop.length === 0}
        onPress={() => runForAll(toStop, actions.stopWorkspace, "stop")}
      >
        Stop
      </Button>
      <Button
        look="ghost"
        icon="up"
        disabled={toUpdate.length === 0}
        onPress={() => runForAll(toUpdate, (one) => actions.updateWorkspace(one), "are updated")}
      >
        Update
      </Button>
      <Button look="ghost danger" onPress={() => actions.deleteWorkspaces(rows, clearSelection)}>
        Delete
      </Button>
      <IconButton icon="x" label="Clear selection" onPress={clearSelection} />
    </div>
  );
};
