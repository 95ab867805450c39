// The life of anything that is connected to the server: again and again, with a pause in between that grows while it does not work
// (rule DM-2). Shared by the connection that asks and the tunnel that answers.
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import { backoff, pause } from "#base/retry.ts";
import { TokenRefused } from "./dial.ts";

const CEILING_MS = 10_000;
// A void token is void for good, most likely, but a clock or a restored backup may bring it back.
const REFUSED_CEILING_MS = 60_000;
/** A build may still be on its way to say which token it has made: until then nobody knows it. */
const UNKNOWN_CEILING_MS = 2_000;
/** Tries; ten minutes of them. */
const UNKNOWN_TRIES = 400;
const HURRY_MS = 500;
/** A connection that lived this long was a good one: the next back-off starts small again. */
const GOOD_AFTER_MS = 1_000;

export type ReconnectOptions = {
  /** What it is, for the log. */
  what: string;
  clock: Clock;
  random: Random;
  signal: AbortSignal;
  /** Once it has fired there is little time left: tries are made every half second, the next one at once. */
  hurry?: AbortSignal;
  /** One connection from dialling to its end; answers why it ended, and never rejects. */
  once(): Promise<Error>;
};

/** Resolves after the signal has fired; never rejects. */
export const reconnect = async ({ what, clock, random, signal, hurry, once }: ReconnectOptions): Promise<void> => {
  let wasKnown = false;
  for (let failures = 0; !signal.aborted; failures += 1) {
    const began = clock.monotonic();
    const failure = await once();
    if (signal.aborted) return;
    if (clock.monotonic() - began >= GOOD_AFTER_MS && !(failure instanceof TokenRefused)) failures = 0;
    const refused = failure instanceof TokenRefused;
    wasKnown ||= !refused && clock.monotonic() - began >= GOOD_AFTER_MS;
    const isEarly = !wasKnown && failures < UNKNOWN_TRIES;
    const ceiling = refused ? (isEarly ? UNKNOWN_CEILING_MS : REFUSED_CEILING_MS) : CEILING_MS;
    const wait = backoff(failures, hurry?.aborted ? HURRY_MS : ceiling, random);
    log("daemon").warn(`${what}, trying again in {wait} ms: {reason}`, { wait, reason: failure.message });
    await pause(clock, wait, hurry && !hurry.aborted ? AbortSignal.any([signal, hurry]) : signal);
  }
};
