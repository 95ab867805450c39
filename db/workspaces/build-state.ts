// The stored state of a build. Terraform's contains all secrets of the workspace, so it is encrypted; a remote worker's place remains
// readable, because the queue depends on it.
import type { Encryption } from "#base/encryption.ts";

const toSealContext = (workspace_id: string): string => `build_state:${workspace_id}`;

/** Provisioners whose states are encrypted. */
const SEALED = new Set(["terraform", "external"]);

type SealedState = { readonly place?: string; readonly sealed: string };

const splitState = (text: string): Partial<SealedState> => {
  if (!text.startsWith("{")) return {};
  try {
    return JSON.parse(text) as Partial<SealedState>;
  } catch {
    return {};
  }
};

/** Returns the stored form. `provisioner` is the build's. */
export const sealState = (
  encryption: Encryption,
  { workspace_id, provisioner }: { readonly workspace_id: string; readonly provisioner: string },
  state: string | null,
): string | null => {
  if (state === null || !SEALED.has(provisioner)) return state;
  const { place } = splitState(state);
  const sealed = encryption.seal(Bun.gzipSync(state).toBase64(), toSealContext(workspace_id));
  return JSON.stringify({ ...(typeof place === "string" ? { place } : {}), sealed } satisfies SealedState);
};

/** Decrypts an encrypted state, and returns any other unchanged. Throws `UnsealError`. */
export const openState = (encryption: Encryption, workspace_id: string, stored: string | null): string | null => {
  const { sealed } = stored === null ? {} : splitState(stored);
  if (typeof sealed !== "string") return stored;
  const zipped = Uint8Array.fromBase64(encryption.open(sealed, toSealContext(workspace_id)));
  return new TextDecoder().decode(Bun.gunzipSync(zipped));
};
