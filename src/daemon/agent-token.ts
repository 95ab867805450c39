// The token with which the daemon signs in. The server replaces the token when someone loses access to the workspace (rule DM-30). A
// restarted daemon starts with its first token again, so it stores the newest token in the home, encrypted with the first: a reader needs
// both the file and the first token, so a snapshot or backup alone does not reveal the newest one.
import { createCipheriv, createDecipheriv, createHmac } from "node:crypto";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { generateBytes, sha256 } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { readRegularText } from "#base/system/regular-file.ts";
import { resolveStateFolder } from "./environment.ts";

const IV_BYTES = 12;
const TAG_BYTES = 16;
const MAX_FILE_BYTES = 1024;
/** The newest, the previous one, and the first, which a restored server may know. */
const MAX_TOKENS = 3;

type Env = Readonly<Record<string, string | undefined>>;

export class AgentToken {
  readonly #first: string;
  readonly #file: string;
  /** The tokens that the server may accept; the first is used until it is refused. */
  #tokens: readonly string[];
  /** Number of these tokens that the server has refused in a row. */
  #refusedCount = 0;

  constructor(first: string, env: Env) {
    this.#first = first;
    this.#file = join(resolveStateFolder(env), "agent-tokens", sha256(`file ${first}`).slice(0, 32));
    const newest = this.#load();
    this.#tokens = newest === undefined ? [first] : [newest, first];
  }

  /** The token to sign in with. */
  get value(): string {
    return this.#tokens[0] ?? this.#first;
  }

  /** Takes over a new token from the server. If the server refuses it, the previous token is tried again. */
  renew(token: string): void {
    this.#tokens = [token, ...this.#tokens.filter((one) => one !== token)].slice(0, MAX_TOKENS);
    this.#refusedCount = 0;
    this.#store(token);
  }

  /** Called when the server has accepted `token`. */
  accept(token: string): void {
    if (token === this.value) this.#refusedCount = 0;
  }

  /** Called when the server has refused `token`. Returns whether it has refused all of them. */
  refuse(token: string): boolean {
    if (token !== this.value) return false;
    const [refused = token, ...others] = this.#tokens;
    this.#tokens = [...others, refused];
    this.#refusedCount += 1;
    return this.#refusedCount >= this.#tokens.length;
  }

  #load(): string | undefined {
    const encrypted = readRegularText(this.#file, MAX_FILE_BYTES);
    if (encrypted === undefined) return undefined;
    try {
      const bytes = Buffer.from(encrypted, "base64");
      const decipher = createDecipheriv("aes-256-gcm", this.#key(), bytes.subarray(0, IV_BYTES));
      decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
      const body = bytes.subarray(IV_BYTES + TAG_BYTES);
      return Buffer.concat([decipher.update(body), decipher.final()]).toString("utf8");
    } catch (error) {
      log("daemon").warn("the agent's newest token cannot be read: {error}", { error });
      return undefined;
    }
  }

  #store(token: string): void {
    try {
      const iv = generateBytes(IV_BYTES);
      const cipher = createCipheriv("aes-256-gcm", this.#key(), iv);
      const body = Buffer.concat([cipher.update(token, "utf8"), cipher.final()]);
      mkdirSync(dirname(this.#file), { recursive: true, mode: 0o700 });
      writeFileSync(`${this.#file}.new`, Buffer.concat([iv, cipher.getAuthTag(), body]).toString("base64"), {
        mode: 0o600,
      });
      renameSync(`${this.#file}.new`, this.#file);
    } catch (error) {
      log("daemon").error("the agent's new token cannot be stored and is lost when this daemon restarts: {error}", {
        error,
      });
    }
  }

  #key(): Buffer {
    return createHmac("sha256", this.#first).update("slipway agent token").digest();
  }
}
