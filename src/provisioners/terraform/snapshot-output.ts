// The name that a template and its snapshot module share (docs/snapshots.md). The template's output of this name describes the resources to
// copy, and the module's output describes the copy. A variable of the same name receives the other one's output. Pure.
import { parseState } from "./state-json.ts";

export const SNAPSHOT_NAME = "slipway_snapshot";
/** The module's folder in a template. */
export const SNAPSHOT_FOLDER = "slipway-snapshot";

/** The variables that the server sets for the module. The module must declare the first one. */
export const MODULE_VARIABLES = [SNAPSHOT_NAME, "slipway_snapshot_id", "slipway_workspace_id"] as const;

/** Returns the value of the output `slipway_snapshot` as JSON; undefined if the state has none, or if it is null. */
export const readSnapshotOutput = (state: string | null): string | undefined => {
  try {
    const { outputs = {} } = parseState(state) as { outputs?: Record<string, { value?: unknown }> };
    const value = outputs[SNAPSHOT_NAME]?.value ?? undefined;
    return value === undefined ? undefined : JSON.stringify(value);
  } catch {
    return undefined;
  }
};
