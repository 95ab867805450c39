// Checks whether the time of a rejection reveals how much of a token was right: compares tokens that are wrong at their first byte and at
// their last byte, in random order, with Welch's t (RELIABILITY check 31). `bun run torture` runs the full form; CI runs a short one
// without a limit for t.
import type { Clock } from "#base/clock.ts";
import { SECOND_FACTOR_POLICIES } from "#base/config/sign-in-settings.ts";
import { keySecret } from "#base/ids.ts";
import { SetupLink } from "#domain/users/setup-link.ts";
import { AgentTokens } from "#src/api/http/agent-tokens.ts";
import { identify } from "#src/api/http/identify.ts";
import { UserKeys } from "#src/api/http/user-keys.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { getContext, seedAgent } from "#test/support/seed.ts";
import { startTestServer, type TestServer } from "#test/support/server.ts";

type Check = { name: string; run(options: CheckOptions): Promise<string> };
type CheckOptions = { rounds: number; seed: number; log(line: string): void };

/** The limit of |t|, above which the two are distinguishable (dudect's limit is 4.5; the design's is 4). */
const MAX_T = 4;
/** Slower calls are left out, because the machine delays them: garbage collection, other processes. */
const KEPT_SHARE = 0.95;

/**
 * A kind of token: a valid token, the index where its secret begins, and a function that tries a token and returns whether it was rejected.
 */
type Kind = { name: string; right: string; secretFrom: number; isRejected(token: string): Promise<boolean> };

export type Timing = { name: string; calls: number; t: number; refused: number };

export const createKinds = async (server: TestServer): Promise<Kind[]> => {
  const { store, topics, encryption } = getContext(server);
  const clock: Clock = new ManualClock(getContext(server).clock.now());
  const { owner_token, agent_token } = await seedAgent(server);
  const agents = new AgentTokens({ store, topics, clock, location: { isHere: () => true, countArrivals: () => 0 } });
  const keys = new UserKeys(store);
  const link = new SetupLink({ store, clock });
  const [policy] = SECOND_FACTOR_POLICIES;
  const addresses = { of: () => "192.0.2.1" };
  const request = new Request("http://localhost/api/v2/users/me");
  const isUnidentified = async (token: string): Promise<boolean> =>
    (await identify({ token, source: "header", compat: false }, request, {
      store,
      clock,
      agents,
      keys,
      policy,
      addresses,
      encryption,
    })) instanceof Error;
  const isInvalidLink = (token: string): Promise<boolean> =>
    link.check(token).then(
      () => false,
      () => true,
    );
  return [
    { name: "session token", right: owner_token, secretFrom: owner_token.indexOf("-") + 1, isRejected: isUnidentified },
    { name: "agent token", right: agent_token, secretFrom: 0, isRejected: isUnidentified },
    { name: "setup token", right: await link.offer(), secretFrom: 0, isRejected: isInvalidLink },
  ];
};

/** Returns the token with a different character at one end of its secret. */
export const corruptToken = (
  { right, secretFrom }: Pick<Kind, "right" | "secretFrom">,
  end: "first" | "last",
): string => {
  const index = end === "first" ? secretFrom : right.length - 1;
  // The characters are hex digits, so that an agent token remains a UUID.
  const otherDigits = [..."0123456789abcdef"].filter((digit) => digit !== right[index]);
  const character = otherDigits[keySecret().charCodeAt(0) % otherDigits.length] as string;
  return right.slice(0, index) + character + right.slice(index + 1);
};

/** Measures `calls` calls with a wrong first byte and as many with a wrong last byte, in random order. */
export const measureTiming = async (kind: Kind, calls: number): Promise<Timing> => {
  const times: Record<"first" | "last", number[]> = { first: [], last: [] };
  let refused = 0;
  for (let i = 0; i < calls / 10; i++) await kind.isRejected(corruptToken(kind, "first"));
  while (times.first.length < calls || times.last.length < calls) {
    const end = keySecret().charCodeAt(0) % 2 === 0 ? "first" : "last";
    const token = corruptToken(kind, end);
    const startedAt = Bun.nanoseconds();
    const isRefused = await kind.isRejected(token);
    times[end].push(Bun.nanoseconds() - startedAt);
    if (isRefused) refused++;
  }
  const sortedTimes = [...times.first, ...times.last].sort((a, b) => a - b);
  const maxTime = sortedTimes[Math.floor(sortedTimes.length * KEPT_SHARE)] as number;
  const t = welch(
    times.first.filter((time) => time <= maxTime),
    times.last.filter((time) => time <= maxTime),
  );
  return { name: kind.name, calls: sortedTimes.length, t, refused };
};

/** Returns Welch's t of two samples. */
export const welch = (a: readonly number[], b: readonly number[]): number => {
  const [momentsA, momentsB] = [computeMoments(a), computeMoments(b)];
  return (momentsA.mean - momentsB.mean) / Math.sqrt(momentsA.variance / a.length + momentsB.variance / b.length);
};

const computeMoments = (sample: readonly number[]): { mean: number; variance: number } => {
  const mean = sample.reduce((sum, value) => sum + value, 0) / sample.length;
  const squares = sample.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, variance: squares / (sample.length - 1) };
};

export const checks: readonly Check[] = [
  {
    name: "tokens: time of a refusal",
    async run({ rounds, log }) {
      await using server = await startTestServer();
      const results: string[] = [];
      for (const kind of await createKinds(server)) {
        const { t, calls, refused } = await measureTiming(kind, rounds);
        log(`${kind.name}: t = ${t.toFixed(2)} over ${calls} calls`);
        if (refused !== calls) throw new Error(`${kind.name}: ${calls - refused} wrong tokens were accepted`);
        if (Math.abs(t) >= MAX_T) throw new Error(`${kind.name}: first and last byte differ, t = ${t.toFixed(2)}`);
        results.push(`${kind.name} t = ${t.toFixed(2)}`);
      }
      return `${rounds} calls each with the first and with the last byte wrong: ${results.join(", ")}`;
    },
  },
];
