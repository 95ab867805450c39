// Encrypts the texts of an agent (environment, scripts) into which a template inserted the value of a sensitive variable or a secret of the
// workspace's owner. Only the agent gets them. All other texts are stored in plain form, so that reading an agent without secrets costs
// nothing. Pure except for the random nonces.
import type { Encryption } from "./encryption.ts";

/** Converts a text to its stored form or back. */
export type TextChange = (text: string) => string;

const toSealContext = (agent_id: string): string => `agent_text:${agent_id}`;

/** Shown to people in place of a text that contains a secret. */
export const HIDDEN_TEXT = "(hidden)";

/**
 * Encrypts texts of one agent that contain one of `secrets` (empty ones are ignored). A text that looks encrypted is encrypted again, so that
 * a caller cannot make the server decrypt a text it did not encrypt.
 */
export const sealSecretTexts = (encryption: Encryption, agent_id: string, secrets: readonly string[]): TextChange => {
  const known = secrets.filter((secret) => secret !== "");
  return (text) =>
    known.some((secret) => text.includes(secret)) || text.startsWith(encryption.prefix)
      ? encryption.seal(text, toSealContext(agent_id))
      : text;
};

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
