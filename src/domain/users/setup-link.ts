// Setup links, with which the first user is created. They are stored by hash, so that a link works on whichever node is active, regardless
// of which node printed it.
import type { Clock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { isSameDigest, linkToken, sha256 } from "#base/ids.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
import { deleteSetting, insertSetting, listSettings } from "#db/settings.ts";

const LINK_TTL_MS = 30 * 60_000;
/** Maximum valid links: a server that restarts repeatedly prints a new one each time. */
const MAX_LINKS = 10;

/** Rows of `settings`: the key is this prefix plus the hash of the token, the value is the expiry in milliseconds since 1970. */
const PREFIX = "setup_link/";
const KEY_RANGE = { from: PREFIX, to: "setup_link0" };

export class SetupLink {
  readonly #store: Store;
  readonly #clock: Clock;

  constructor({ store, clock }: { store: Store; clock: Clock }) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Returns a new token, valid for 30 minutes or until there is a first user. Earlier tokens stay valid for their time. */
  async offer(): Promise<string> {
    const token = linkToken();
    const now = this.#clock.now();
    const links = await this.#store.all(listSettings(KEY_RANGE));
    const kept = links
      .filter(({ value }) => Number(value) > now)
      .sort((a, b) => Number(b.value) - Number(a.value))
      .slice(0, MAX_LINKS - 1);
    const obsolete = links.filter((link) => !kept.includes(link));
    await this.#store.commit([
      ...obsolete.map(({ key }) => deleteSetting(key)),
      insertSetting({ key: PREFIX + sha256(token), value: String(now + LINK_TTL_MS) }),
    ]);
    return token;
  }

  /** Throws 403 for an unknown or expired token. */
  async check(token: string): Promise<void> {
    const digest = sha256(token);
    const now = this.#clock.now();
    let isValid = false;
    for (const { key, value } of await this.#store.all(listSettings(KEY_RANGE))) {
      if (isSameDigest(digest, key.slice(PREFIX.length)) && now < Number(value)) isValid = true;
    }
    if (isValid) return;
    throw new AppError("forbidden", "The setup token is not valid.", {
      detail: "It works once and for 30 minutes. Restart the server to get a new link.",
    });
  }
}

/** Returns the statements that delete all links, for the batch that creates the first user. */
export const closeSetupLinks = async (store: Store): Promise<Statement[]> =>
  (await store.all(listSettings(KEY_RANGE))).map(({ key }) => deleteSetting(key));
