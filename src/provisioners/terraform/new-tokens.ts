// Masks the tokens of new agents before the output of an apply is shown (rule TF-11). The only readable copy of a new token is in the state
// that Terraform rewrites while it prints.
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";
import type { Mask } from "#base/secrets/mask.ts";
import type { Session } from "./session.ts";
import { parseStateSecrets } from "./state-secrets.ts";
import { parseAgentTokens } from "./state-tokens.ts";

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi;
/** Terraform overwrites its state in place, so a reader may find an incomplete state. A write takes milliseconds. */
const REREAD_AFTER_MS = 10;
const MAX_REREADS = 100;

/**
 * Returns true for a line about a created or changed agent. A changed agent keeps its token, so no new token is ever found for it, and
 * `maskBefore` reads every later state.
 */
const isAgentApplied = (line: string): boolean =>
  line.includes('"type":"apply_complete"') &&
  line.includes('"resource_type":"coder_agent"') &&
  !line.includes('"action":"delete"');

export class NewTokens {
  readonly #session: Session;
  readonly #mask: Mask;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #earlierTokens: ReadonlySet<string>;
  /** The result of `Session.readStateStamp` for the last state that was read. */
  #lastStamp: string;
  #hasReadNewState = false;
  /** Number of created or changed agents, and number of new tokens that are masked. */
  #createdCount = 0;
  #maskedCount = 0;
  /** False after waiting in vain for a readable state, so that a damaged state delays only one line of output. */
  #waitsForState = true;

  private constructor(options: NewTokensOptions, earlierTokens: readonly string[], stamp: string) {
    this.#session = options.session;
    this.#mask = options.mask;
    this.#clock = options.clock;
    this.#signal = options.signal;
    this.#earlierTokens = new Set(earlierTokens);
    this.#lastStamp = stamp;
  }

  /** Call before the apply starts. */
  static async open(options: NewTokensOptions): Promise<NewTokens> {
    const stamp = await options.session.readStateStamp();
    const state = await options.session.readState();
    return new NewTokens(options, parseAgentTokens(state ?? null), stamp);
  }

  /**
   * Masks the tokens that this line of Terraform's output could contain. The first state that the apply writes contains the tokens that the
   * plan created; later states contain the tokens of new agents. Reads no state while all tokens are masked, because Terraform writes the
   * state again for each resource, of which there may be thousands.
   */
  async maskBefore(line: string): Promise<void> {
    if (isAgentApplied(line)) this.#createdCount += 1;
    const isMissingTokens = this.#maskedCount < this.#createdCount;
    // A new token without the usual form of a UUID appears only after the line about its agent.
    if (!isMissingTokens && (this.#hasReadNewState || line.match(UUID) === null)) return;
    const stamp = await this.#session.readStateStamp();
    if (stamp === this.#lastStamp) return;
    const state = await this.#readWholeState();
    if (state === undefined) {
      // The token is unknown, so everything that looks like a token is hidden.
      this.#mask.add(...(line.match(UUID) ?? []));
      return;
    }
    this.#waitsForState = true;
    this.#mask.add(...parseStateSecrets(state));
    this.#maskedCount = parseAgentTokens(state).filter((token) => !this.#earlierTokens.has(token)).length;
    this.#hasReadNewState = true;
    this.#lastStamp = stamp;
  }

  /** Returns undefined if the state is still unreadable after a second. */
  async #readWholeState(): Promise<string | undefined> {
    for (let rereads = 0; ; rereads++) {
      const state = await this.#session.readState();
      if (state !== undefined || !this.#waitsForState) return state;
      if (rereads === MAX_REREADS || this.#signal.aborted) {
        this.#waitsForState = false;
        return undefined;
      }
      await pause(this.#clock, REREAD_AFTER_MS, this.#signal);
    }
  }
}

export type NewTokensOptions = {
  readonly session: Session;
  readonly mask: Mask;
  readonly clock: Clock;
  readonly signal: AbortSignal;
};
