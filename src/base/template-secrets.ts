// Texts of an agent (its environment, its scripts) into which a template wrote the value of a sensitive variable: such a text is sealed
// before it is stored, every other text is stored as it is, so that reading an agent costs nothing where there are no secrets. Pure but for
// the random nonce of a sealing.
import type { Encryption } from "./encryption.ts";

/** Turns a text into what is stored, or what was stored into the text. */
export type TextChange = (text: string) => string;

const toSealContext = (agent_id: string): string => `agent_text:${agent_id}`;

/**
 * Seals texts of one agent that hold one of `secrets` (values of sensitive variables; empty ones do not count). What looks as if it was
 * sealed already is sealed, too: a caller cannot make the server open a text it did not seal.
 */
export const sealSecretTexts = (encryption: Encryption, agent_id: string, secrets: readonly string[]): TextChange => {
  const known = secrets.filter((secret) => secret !== "");
  return (text) =>
    known.some((secret) => text.includes(secret)) || text.startsWith(encryption.prefix)
      ? encryption.seal(text, toSealContext(agent_id))
      : text;
};

/** What `sealSecretTexts` was given. Throws `UnsealError` when a sealed text was altered or belongs to another agent. */
export const openSecretTexts = (encryption: Encryption, agent_id: string): TextChange => {
  const { prefix } = encryption;
  return (text) => (text.startsWith(prefix) ? encryption.open(text, toSealContext(agent_id)) : text);
};

/** The same names with changed values. */
export const changeValues = (values: Readonly<Record<string, string>>, change: TextChange): Record<string, string> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value)]));
