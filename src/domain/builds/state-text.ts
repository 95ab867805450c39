// The state that a build leaves for the next one, as base64 text in JSON, and the check whether another state may replace it.
import { type Encryption, UnsealError } from "#base/encryption.ts";
import { conflict, invalidField } from "#base/errors.ts";
import { openState } from "#db/workspaces/build-state.ts";
import { findReplaceProblem, findStateProblem } from "#src/provisioners/terraform/pushed-state.ts";

/** Maximum base64 characters: the limit of a build's state (src/provisioners/terraform/session.ts), so that a pulled state can be pushed. */
export const MAX_STATE_CHARS = Math.ceil((16 * 1024 * 1024) / 3) * 4;

/** Returns the text; undefined unless it is base64 of UTF-8. */
export const parseState = (base64: string): string | undefined => {
  if (base64.length > MAX_STATE_CHARS || base64.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(base64))
    return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(base64, "base64"));
  } catch {
    return undefined;
  }
};

export type PushedState = {
  /** The provisioner of the build that receives the state. */
  readonly provisioner: string;
  readonly text: string;
  /** The stored state, encrypted. */
  readonly before: { readonly workspace_id: string; readonly state: string | null };
  /** The caller wants to discard the stored state. */
  readonly isForced?: boolean;
};

/**
 * Throws 400 for a state the provisioner cannot use, and 409 for one that would lose stored resources. Only Terraform's states describe
 * themselves; other provisioners interpret their own and tolerate invalid text. An empty state means that nothing is left.
 */
export const checkPushed = (
  encryption: Encryption,
  { provisioner, text, before, isForced = false }: PushedState,
): void => {
  if (provisioner !== "terraform") return;
  const problem = text === "" ? undefined : findStateProblem(text);
  if (problem !== undefined) throw invalidField("state", problem);
  const lossProblem = isForced ? undefined : findReplaceProblem(openOrNull(encryption, before), text);
  if (lossProblem !== undefined) throw conflict(lossProblem);
};

/** Returns null for a state that cannot be decrypted, because a push is the way to repair it. */
const openOrNull = (encryption: Encryption, { workspace_id, state }: PushedState["before"]): string | null => {
  try {
    return openState(encryption, workspace_id, state);
  } catch (error) {
    if (error instanceof UnsealError) return null;
    throw error;
  }
};
