// The parts that users' routes share for the life of the process: hashing, the setup link, and counts of sign-in tries.
import type { Clock } from "#base/clock.ts";
import { SetupLink } from "./first-user.ts";
import { Passwords } from "./passwords.ts";
import { Throttle } from "./throttle.ts";

/** Sign-ins and password changes of one address for one account in a minute (facts/platform 3.1). */
const TRIES = 60;

export class Accounts {
  readonly passwords = new Passwords();
  readonly setup: SetupLink;
  readonly tries: Throttle;
  /** True while the first user is still to be made through the setup link. */
  setupNeeded = false;

  constructor(clock: Clock) {
    this.setup = new SetupLink(clock);
    this.tries = new Throttle(clock, TRIES);
  }
}
