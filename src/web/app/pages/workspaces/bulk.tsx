// Actions on all selected workspaces.
import type { WorkspaceSummary } from "#schema/workspaces/workspace-watch.ts";
import { canStart, canStop, isPassing } from "../../data/states.ts";
import * as actions from "../../data/workspace-actions.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { showToast } from "../../shell/toasts.tsx";

export const Bulk = ({ rows, clear }: { rows: readonly WorkspaceSummary[]; clear: () => void }) => {
  const running = rows.filter(({ status }) => status === "running").length;
  const toStart = rows.filter(canStart);
  const toStop = rows.filter(canStop);
  const toUpdate = rows.filter((row) => row.outdated && !isPassing(row));
  const runForAll = async (
    targets: readonly WorkspaceSummary[],
    act: (one: WorkspaceSummary) => Promise<unknown>,
    words: string,
  ) => {
    await actions.applyToEach(targets, act);
    showToast(`${targets.length === 1 ? targets[0]?.name : `${targets.length} workspaces`} ${words}`);
    clear();
  };
  return (
    <div class="bulk" role="toolbar" aria-label="Selected workspaces">
      <span class="med num">{rows.length} selected</span>
      {running > 0 && <span class="dim small desk">{running} running</span>}
      <Button
        look="ghost"
        icon="play"
        disabled={toStart.length === 0}
        onPress={() => runForAll(toStart, actions.start, "start")}
      >
        Start
      </Button>
      <Button
        look="ghost"
        icon="stop"
        disabled={toStop.length === 0}
        onPress={() => runForAll(toStop, actions.stop, "stop")}
      >
        Stop
      </Button>
      <Button
        look="ghost"
        icon="up"
        disabled={toUpdate.length === 0}
        onPress={() => runForAll(toUpdate, (one) => actions.update(one), "are updated")}
      >
        Update
      </Button>
      <Button look="ghost danger" onPress={() => actions.remove(rows, clear)}>
        Delete
      </Button>
      <IconButton icon="x" label="Clear selection" onPress={clear} />
    </div>
  );
};
