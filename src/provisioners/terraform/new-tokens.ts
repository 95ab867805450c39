// Masks the tokens of agents that an apply creates before any of its lines is shown (rule TF-11). The only readable copy of a new token is
// the state that Terraform rewrites while it prints.
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";
import type { Mask } from "#base/secrets/mask.ts";
import type { Session } from "./session.ts";
import { parseStateSecrets } from "./state-secrets.ts";
import { parseAgentTokens } from "./state-tokens.ts";

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi;
/** Terraform overwrites its state in place, so a reader can find half of it. A write takes milliseconds. */
const REREAD_AFTER_MS = 10;
const MAX_REREADS = 100;

/**
 * Returns true for a line about a created or changed agent. A changed agent keeps its token, so it counts as an agent whose token was not
 * seen; then every state is read.
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
  /** The last state that was read, as `Session.readStateStamp` describes it. */
  #lastStamp: string;
  #hasReadNewState = false;
  /** Number of created agents, and of those whose new token is masked. */
  #createdCount = 0;
  #maskedCount = 0;
  /** False while a state stays unreadable, so that a damaged one delays one line and not each. */
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
   * Masks the tokens that this line of Terraform's output could contain. Tokens created by the plan are in the first state that the apply
   * writes, those of new agents in later ones. States are skipped once all tokens are masked, because with thousands of resources Terraform
   * writes the state for each of them.
   */
  async maskBefore(line: string): Promise<void> {
    if (isAgentApplied(line)) this.#createdCount += 1;
    const isMissingTokens = this.#maskedCount < this.#createdCount;
    // A token in another encoding than the usual one comes after the agent's own line.
    if (!isMissingTokens && (this.#hasReadNewState || line.match(UUID) === null)) return;
    const stamp = await this.#session.readStateStamp();
    if (stamp === this.#lastStamp) return;
    const state = await this.#readWholeState();
    if (state === undefined) {
      // The token is not known, so that anything that looks like one is hidden.
      this.#mask.add(...(line.match(UUID) ?? []));
      return;
    }
    this.#waitsForState = true;
    this.#mask.add(...parseStateSecrets(state));
    this.#maskedCount = parseAgentTokens(state).filter((token) => !this.#earlierTokens.has(token)).length;
    this.#hasReadNewState = true;
    this.#lastStamp = stamp;
  }

  /** Returns undefined if the state cannot be read, also not after a second. */
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
