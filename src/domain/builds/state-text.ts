// What a build has left behind for the next one, as it travels in JSON: base64 of a text; and whether another one may take its place.
import { type Encryption, UnsealError } from "#base/encryption.ts";
import { conflict, invalidField } from "#base/errors.ts";
import { openState } from "#db/workspaces/build-state.ts";
import { replaceProblem, stateProblem } from "#src/provisioners/terraform/pushed-state.ts";

/** Characters of base64: as much as a build may leave (src/provisioners/terraform/session.ts), so that what was pulled can be pushed. */
export const STATE_LIMIT = Math.ceil((16 * 1024 * 1024) / 3) * 4;

/** The text; undefined when it is not base64 of UTF-8. */
export const stateFrom = (base64: string): string | undefined => {
  if (base64.length > STATE_LIMIT || base64.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(base64))
    return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(base64, "base64"));
  } catch {
    return undefined;
  }
};

export type Pushed = {
  /** Of the build that is told it. */
  readonly provisioner: string;
  readonly text: string;
  /** What is stored, as it is stored. */
  readonly before: { readonly workspace_id: string; readonly state: string | null };
  /** Anyone who pushes it means to forget what is stored. */
  readonly isForced?: boolean;
};

/**
 * Throws 400 for what the provisioner could not go on from, and 409 for what would forget something that is stored. Only Terraform's states say
 * what they are: what others remember is theirs, and they take no harm from a text that is not. An empty one says that nothing is left.
 */
export const checkPushed = (encryption: Encryption, { provisioner, text, before, isForced = false }: Pushed): void => {
  if (provisioner !== "terraform") return;
  const problem = text === "" ? undefined : stateProblem(text);
  if (problem !== undefined) throw invalidField("state", problem);
  const forgotten = isForced ? undefined : replaceProblem(openedOrNone(encryption, before), text);
  if (forgotten !== undefined) throw conflict(forgotten);
};

/** What cannot be opened any more is what a push repairs. */
const openedOrNone = (encryption: Encryption, { workspace_id, state }: Pushed["before"]): string | null => {
  try {
    return openState(encryption, workspace_id, state);
  } catch (error) {
    if (error instanceof UnsealError) return null;
    throw error;
  }
};
