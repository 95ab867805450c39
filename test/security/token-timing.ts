// Checks whether the time of a rejection reveals how much of a token was right: tokens wrong at their first and at their last byte, in
// random order, compared with Welch's t (RELIABILITY check 31). `bun run torture` runs the full form; CI only a short one without a time
// limit.
import type { Clock } from "#base/clock.ts";
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

/** Above this, the two are distinguishable (dudect's limit is 4.5; the design's is 4). */
const BOUND = 4;
/** Slower ones are due to the machine: garbage collection, other processes. */
const KEPT_SHARE = 0.95;

/** One kind of token: a valid one, the index where its secret begins, and how it is tried; returns whether it was rejected. */
type Kind = { name: string; right: string; secretFrom: number; refuses(token: string): Promise<boolean> };

export type Timing = { name: string; calls: number; t: number; refused: number };

export const createKinds = async (server: TestServer): Promise<Kind[]> => {
  const { store, topics, encryption } = getContext(server);
  const clock: Clock = new ManualClock(getContext(server).clock.now());
  const { owner_token, agent_token } = await seedAgent(server);
  const agents = new AgentTokens({ store, topics, clock, location: { isHere: () => true, countArrivals: () => 0 } });
  const keys = new UserKeys(store);
  const link = new SetupLink({ store, clock });
  const policy = "nobody";
  const addresses = { of: () => "192.0.2.1" };
  const request = new Request("http://localhost/api/v2/users/me");
  const isNobody = async (token: string): Promise<boolean> =>
    (await identify({ token, source: "header", compat: false }, request, {
      store,
      clock,
      agents,
      keys,
      policy,
      addresses,
      encryption,
    })) instanceof Error;
  const isNotTheLink = (token: string): Promise<boolean> =>
    link.check(token).then(
      () => false,
      () => true,
    );
  return [
    { name: "session token", right: owner_token, secretFrom: owner_token.indexOf("-") + 1, refuses: isNobody },
    { name: "agent token", right: agent_token, secretFrom: 0, refuses: isNobody },
    { name: "setup token", right: await link.offer(), secretFrom: 0, refuses: isNotTheLink },
  ];
};

/** Returns the token with a different character at one end of its secret. */
export const corruptToken = (
  { right, secretFrom }: Pick<Kind, "right" | "secretFrom">,
  end: "first" | "last",
): string => {
  const at = end === "first" ? secretFrom : right.length - 1;
  // Hex digits, so that an agent token stays a UUID.
  const other = [..."0123456789abcdef"].filter((one) => one !== right[at]);
  const pick = other[keySecret().charCodeAt(0) % other.length] as string;
  return right.slice(0, at) + pick + right.slice(at + 1);
};

/** Measures `calls` of each end, in random order. */
export const measureTiming = async (kind: Kind, calls: number): Promise<Timing> => {
  const times: Record<"first" | "last", number[]> = { first: [], last: [] };
  let refused = 0;
  for (let i = 0; i < calls / 10; i++) await kind.refuses(corruptToken(kind, "first"));
  while (times.first.length < calls || times.last.length < calls) {
    const end = keySecret().charCodeAt(0) % 2 === 0 ? "first" : "last";
    const token = corruptToken(kind, end);
    const began = Bun.nanoseconds();
    const isRefused = await kind.refuses(token);
    times[end].push(Bun.nanoseconds() - began);
    if (isRefused) refused++;
  }
  const all = [...times.first, ...times.last].sort((a, b) => a - b);
  const most = all[Math.floor(all.length * KEPT_SHARE)] as number;
  const t = welch(
    times.first.filter((one) => one <= most),
    times.last.filter((one) => one <= most),
  );
  return { name: kind.name, calls: all.length, t, refused };
};

/** Returns Welch's t of two samples. */
export const welch = (a: readonly number[], b: readonly number[]): number => {
  const [x, y] = [computeMoments(a), computeMoments(b)];
  return (x.mean - y.mean) / Math.sqrt(x.variance / a.length + y.variance / b.length);
};

const computeMoments = (sample: readonly number[]): { mean: number; variance: number } => {
  const mean = sample.reduce((sum, one) => sum + one, 0) / sample.length;
  const squares = sample.reduce((sum, one) => sum + (one - mean) ** 2, 0);
  return { mean, variance: squares / (sample.length - 1) };
};

export const checks: readonly Check[] = [
  {
    name: "tokens: time of a refusal",
    async run({ rounds, log }) {
      await using server = await startTestServer();
      const seen: string[] = [];
      for (const kind of await createKinds(server)) {
        const { t, calls, refused } = await measureTiming(kind, rounds);
        log(`${kind.name}: t = ${t.toFixed(2)} over ${calls} calls`);
        if (refused !== calls) throw new Error(`${kind.name}: ${calls - refused} wrong ones were taken`);
        if (Math.abs(t) >= BOUND) throw new Error(`${kind.name}: first and last byte differ, t = ${t.toFixed(2)}`);
        seen.push(`${kind.name} t = ${t.toFixed(2)}`);
      }
      return `${rounds} calls each with the first and with the last byte wrong: ${seen.join(", ")}`;
    },
  },
];
