// The name by which a template and its module for snapshots speak of what is copied (docs/snapshots.md): the template's output says what there is, the
// module's output what a copy is restored from, and variables of the same name receive each. Pure.

export const SNAPSHOT_NAME = "slipway_snapshot";
/** The folder of the module in a template. */
export const SNAPSHOT_FOLDER = "slipway-snapshot";

/** What the server gives the module; it needs to declare only the first. */
export const MODULE_VARIABLES = [SNAPSHOT_NAME, "slipway_snapshot_id", "slipway_workspace_id"] as const;

/** Returns the value of that output as JSON; undefined where the state has none, or null. */
export const readSnapshotOutput = (state: string | null): string | undefined => {
  try {
    const { outputs = {} } = JSON.parse(state ?? "{}") as { outputs?: Record<string, { value?: unknown }> };
    const value = outputs[SNAPSHOT_NAME]?.value ?? undefined;
    return value === undefined ? undefined : JSON.stringify(value);
  } catch {
    return undefined;
  }
};
