// What a template's own module has made for a snapshot, as it lies in the database, and what a workspace was restored from. Both may hold secrets
// of a cloud, so both are sealed: the first for the snapshot, the second for the workspace.
import type { Encryption } from "#base/encryption.ts";

/** What the module has made. */
export type ModuleState = {
  /** Whose module it was: the same removes it. */
  readonly template_version_id: string;
  /** What the workspace has said there is to copy, as JSON: the module's variable `slipway_snapshot`. */
  readonly source: string;
  /** That of Terraform. */
  readonly state: string;
};

const toStateContext = (snapshot_id: string): string => `snapshot_state:${snapshot_id}`;
const toValueContext = (workspace_id: string): string => `snapshot_value:${workspace_id}`;

/** Returns what is stored. */
export const sealModuleState = (encryption: Encryption, snapshot_id: string, made: ModuleState): string =>
  encryption.seal(Bun.gzipSync(JSON.stringify(made)).toBase64(), toStateContext(snapshot_id));

/** Returns what was sealed; undefined for a snapshot of files. Throws `UnsealError`. */
export const openModuleState = (
  encryption: Encryption,
  snapshot_id: string,
  sealed: string,
): ModuleState | undefined => {
  if (sealed === "") return undefined;
  const zipped = Uint8Array.fromBase64(encryption.open(sealed, toStateContext(snapshot_id)));
  return JSON.parse(new TextDecoder().decode(Bun.gunzipSync(zipped))) as ModuleState;
};

/** Returns what a workspace is restored from, as it is stored with its builds. `value` is JSON. */
export const sealSnapshotValue = (encryption: Encryption, workspace_id: string, value: string): string =>
  encryption.seal(value, toValueContext(workspace_id));

/** Returns what was sealed; undefined for a workspace that was restored from nothing. Throws `UnsealError`. */
export const openSnapshotValue = (encryption: Encryption, workspace_id: string, sealed: string): string | undefined =>
  sealed === "" ? undefined : encryption.open(sealed, toValueContext(workspace_id));
