// Tokens of linked accounts are renewed by the first node, for whichever node needs one: a provider that takes each refresh token once would end
// the grant where two nodes used it.

import type { Clock } from "#base/clock.ts";
import { NotBegun } from "#base/errors.ts";
import { FIRST_PART } from "#base/parts.ts";
import { retry } from "#base/retry.ts";
import { CommitError } from "#db/engine/store.ts";
import type { Links, RefreshElsewhere } from "#domain/external-auth/links.ts";
import type { Far } from "./far-actors.ts";

const SERVICE = "external_auth";
/** Another node may be about to become the first one. */
const AGAIN_MS = 500;
const TRIES = 30;

type Needs = Pick<Far, "parts" | "links">;

/** For `Links`: undefined at the first node. */
export const farRefreshes =
  ({ parts, links }: Needs, clock: Clock): RefreshElsewhere =>
  (asked) => {
    if (parts.isFirst) return undefined;
    const ask = async (): Promise<void> => {
      const first = parts.nodeOf(FIRST_PART);
      if (!first) throw new NotBegun("No node is the first one now.");
      await links.call(first, SERVICE, asked);
    };
    // Of an answer that was lost the first node knows: who asks again joins what is under way, or finds it done.
    const isPassing = (error: unknown): boolean =>
      error instanceof NotBegun || (error instanceof CommitError && error.reason === "unknown");
    return retry(clock, ask, (error, failures) => (isPassing(error) && failures < TRIES ? AGAIN_MS : undefined));
  };

/** Renews for other nodes. */
export const answerFarRefreshes = ({ parts, links }: Needs, here: Pick<Links, "refresh">): void =>
  links.serve(SERVICE, async (asked) => {
    if (!parts.isFirst) throw new NotBegun("The node is not the first one.");
    await here.refresh(asked as Parameters<Links["refresh"]>[0]);
  });
