// The stored form of what a template's module created for a snapshot, and of the value that a workspace was restored from. Both may contain
// cloud secrets, so both are encrypted: the first for the snapshot, the second for the workspace.
import type { Encryption } from "#base/encryption.ts";

/** What the module has created. */
export type ModuleState = {
  /** The version whose module created it, and must delete it. */
  readonly template_version_id: string;
  /** What the workspace reported for copying, as JSON: the module's variable `slipway_snapshot`. */
  readonly source: string;
  /** Terraform's state. */
  readonly state: string;
};

const toStateContext = (snapshot_id: string): string => `snapshot_state:${snapshot_id}`;
const toValueContext = (workspace_id: string): string => `snapshot_value:${workspace_id}`;

/** Returns the stored form. */
export const sealModuleState = (encryption: Encryption, snapshot_id: string, created: ModuleState): string =>
  encryption.seal(Bun.gzipSync(JSON.stringify(created)).toBase64(), toStateContext(snapshot_id));

/** Returns the decrypted state; undefined for a snapshot of files. Throws `UnsealError`. */
export const openModuleState = (
  encryption: Encryption,
  snapshot_id: string,
  sealed: string,
): ModuleState | undefined => {
  if (sealed === "") return undefined;
  const zipped = Uint8Array.fromBase64(encryption.open(sealed, toStateContext(snapshot_id)));
  return JSON.parse(new TextDecoder().decode(Bun.gunzipSync(zipped))) as ModuleState;
};

/** Encrypts the value that a workspace is restored from, for storing it with builds. `value` is JSON. */
export const sealSnapshotValue = (encryption: Encryption, workspace_id: string, value: string): string =>
  encryption.seal(value, toValueContext(workspace_id));

/** Returns the decrypted value; undefined for a workspace that was not restored. Throws `UnsealError`. */
export const openSnapshotValue = (encryption: Encryption, workspace_id: string, sealed: string): string | undefined =>
  sealed === "" ? undefined : encryption.open(sealed, toValueContext(workspace_id));
