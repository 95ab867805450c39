// Protects the values of sensitive variables and the secrets of a workspace's owner that a template inserted into its texts. Texts that
// only the agent needs (environment, scripts) are encrypted; the others (such as apps, metadata and folders) are shown to everyone who can
// see the workspace, so secrets in them are replaced permanently. Texts without secrets are stored in plain form, so that reading them
// costs nothing. Pure except for the random nonces.
import type { Encryption } from "../encryption.ts";
import { HIDDEN_TEXT, Mask } from "./mask.ts";

/** Converts a text to its stored form or back. */
export type TextChange = (text: string) => string;

const toSealContext = (agent_id: string): string => `agent_text:${agent_id}`;

/** The secrets of a build. */
export class BuildSecrets {
  readonly #values: readonly string[];
  readonly #mask = new Mask();

  constructor(values: readonly string[]) {
    this.#values = values.filter((value) => value !== "");
    this.#mask.add(...this.#values);
  }

  /** Returns true if the text contains a secret, in any of the encodings that templates use. */
  isIn(text: string): boolean {
    return this.#values.some((value) => text.includes(value)) || this.hide(text) !== text;
  }

  /** Masks the secrets in a text for people, except for very short secrets. */
  hide(text: string): string {
    return this.#mask.hide(text);
  }
}

/**
 * Encrypts texts of one agent: those with a secret, or all. A text that looks encrypted is encrypted again, so that a caller cannot make
 * the server decrypt a text that it did not encrypt.
 */
export const sealSecretTexts =
  (encryption: Encryption, agent_id: string, secrets: BuildSecrets | "all"): TextChange =>
  (text) =>
    secrets === "all" || secrets.isIn(text) || text.startsWith(encryption.prefix)
      ? encryption.seal(text, toSealContext(agent_id))
      : text;

/** Reverses `sealSecretTexts`. Throws `UnsealError` when an encrypted text was altered or belongs to another agent. */
export const openSecretTexts = (encryption: Encryption, agent_id: string): TextChange => {
  const { prefix } = encryption;
  return (text) => (text.startsWith(prefix) ? encryption.open(text, toSealContext(agent_id)) : text);
};

/** Replaces encrypted texts, for answers to people: otherwise everyone who can see a workspace could use its owner's session token. */
export const hideSecretTexts =
  ({ prefix }: Pick<Encryption, "prefix">): TextChange =>
  (text) =>
    text.startsWith(prefix) ? HIDDEN_TEXT : text;

/** Applies `change` to all values and keeps the names. */
export const mapValues = (values: Readonly<Record<string, string>>, change: TextChange): Record<string, string> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value)]));
