// What a build has left behind, as it lies in the database. That of Terraform holds every secret of the workspace, so it is sealed; where a
// worker of its own remembers a place, that stays readable, because the queue chooses by it.
import type { Encryption } from "#base/encryption.ts";

const toSealContext = (workspace_id: string): string => `build_state:${workspace_id}`;

/** Provisioners whose states are sealed. */
const SEALED = new Set(["terraform", "external"]);

type Sealed = { readonly place?: string; readonly sealed: string };

const splitState = (text: string): Partial<Sealed> => {
  if (!text.startsWith("{")) return {};
  try {
    return JSON.parse(text) as Partial<Sealed>;
  } catch {
    return {};
  }
};

/** What is stored. `provisioner` is that of the build. */
export const sealState = (
  encryption: Encryption,
  { workspace_id, provisioner }: { readonly workspace_id: string; readonly provisioner: string },
  state: string | null,
): string | null => {
  if (state === null || !SEALED.has(provisioner)) return state;
  const { place } = splitState(state);
  const sealed = encryption.seal(Bun.gzipSync(state).toBase64(), toSealContext(workspace_id));
  return JSON.stringify({ ...(typeof place === "string" ? { place } : {}), sealed } satisfies Sealed);
};

/** What was sealed; what was not is answered as it is. Throws `UnsealError`. */
export const openState = (encryption: Encryption, workspace_id: string, stored: string | null): string | null => {
  const { sealed } = stored === null ? {} : splitState(stored);
  if (typeof sealed !== "string") return stored;
  const zipped = Uint8Array.fromBase64(encryption.open(sealed, toSealContext(workspace_id)));
  return new TextDecoder().decode(Bun.gunzipSync(zipped));
};
