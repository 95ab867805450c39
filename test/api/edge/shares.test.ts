// The limits on connections of each holder, and the connections reserved for holders with few.
import { describe, expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { ConnectionShares, countFew, countReservedForFew, hasShare } from "#src/api/http/holders.ts";
import { Client } from "#src/client.ts";
import { RawConnection } from "#test/support/net/raw.ts";
import { randomFrom } from "#test/support/random.ts";
import { getContext, seedAgent, seedUser } from "#test/support/seed.ts";
import { startTestServer } from "#test/support/server.ts";
import { handshake } from "./raw-http.ts";

type Holder = { readonly who: string; readonly owner?: string };

/** Opens and closes connections of holders, and counts them independently of the code under test. */
class Model {
  readonly #shares: ConnectionShares;
  readonly #limit: number;
  readonly counts = new Map<Holder, number>();

  constructor(limit: number) {
    this.#limit = limit;
    this.#shares = new ConnectionShares(limit);
  }

  open(holder: Holder): boolean {
    const heldCount = this.counts.get(holder) ?? 0;
    const isMachine = holder.owner !== undefined;
    const counts = { limit: this.#limit, people: this.countAll(false), machines: this.countAll(true) };
    let isOpen = true;
    try {
      this.#shares.check(holder);
      this.#shares.count(holder, 1);
      this.counts.set(holder, heldCount + 1);
    } catch {
      isOpen = false;
    }
    expect(isOpen).toBe(hasShare({ ...counts, heldCount, isMachine }));
    return isOpen;
  }

  close(holder: Holder): void {
    const heldCount = this.counts.get(holder) ?? 0;
    if (heldCount === 0) return;
    this.#shares.count(holder, -1);
    this.counts.set(holder, heldCount - 1);
  }

  /** Opens connections until the holder has `maxCount` or is rejected, and returns how many it has. */
  fill(holder: Holder, maxCount = this.#limit): number {
    while ((this.counts.get(holder) ?? 0) < maxCount && this.open(holder));
    return this.counts.get(holder) ?? 0;
  }

  countAll(isMachine: boolean): number {
    let sum = 0;
    for (const [{ owner }, heldCount] of this.counts) if ((owner !== undefined) === isMachine) sum += heldCount;
    return sum;
  }

  /** Returns how many open connections are among the first few of their holders. */
  countHeldAsFew(): number {
    let sum = 0;
    for (const heldCount of this.counts.values()) sum += Math.min(heldCount, countFew(this.#limit));
    return sum;
  }
}

/** Creates this many members, each with agents. */
const createMembers = (count: number): Holder[] =>
  Array.from({ length: count }, (_, i): Holder[] => [
    { who: `person ${i}` },
    { who: `agent ${i}`, owner: `agents of ${i}` },
  ]).flat();

const NEWCOMERS: Holder[] = [{ who: "newcomer" }, { who: "agent", owner: "agents of newcomer" }];

describe("shares of connections", () => {
  test("[SK-2] never rejects a holder with fewer connections, or on an emptier server, while accepting another", () => {
    for (let limit = 1; limit <= 20; limit += 1) {
      for (let people = 0; people <= limit; people += 1) {
        for (let machines = 0; people + machines <= limit; machines += 1) {
          for (const isMachine of [false, true]) {
            const ownCount = isMachine ? machines : people;
            const canOpen = (heldCount: number, extra = 0): boolean =>
              hasShare({
                limit,
                people: people + (isMachine ? 0 : extra),
                machines: machines + (isMachine ? extra : 0),
                heldCount,
                isMachine,
              });
            for (let heldCount = 0; heldCount <= ownCount; heldCount += 1) {
              if (people + machines === limit) expect(canOpen(heldCount)).toBe(false);
              if (canOpen(heldCount + 1)) expect(canOpen(heldCount)).toBe(true);
              if (canOpen(heldCount, 1)) expect(canOpen(heldCount)).toBe(true);
            }
            const reservedCount = Math.floor(limit / 4);
            const otherCount = isMachine ? people : machines;
            // A holder without connections is rejected only if all free ones are reserved for the other kind.
            if (limit - people - machines > Math.max(0, reservedCount - otherCount)) expect(canOpen(0)).toBe(true);
          }
        }
      }
    }
  });

  test("[SK-2] the first person gets at most a third, and each further person half as many as the previous one", () => {
    const model = new Model(20_000);
    const shares = createMembers(8)
      .filter(({ owner }) => owner === undefined)
      .map((person) => model.fill(person));
    expect(shares).toEqual([6_250, 3_125, 1_563, 781, 391, 195, 98, 49]);
    expect(model.fill({ who: "an agent", owner: "agents of another" })).toBeGreaterThan(2_500);
  });

  test.each([2, 5, 20, 70])(
    "[SK-2] %i members with as many connections as possible still let a newcomer open a few",
    (count) => {
      for (let seed = 1; seed <= 5; seed += 1) {
        const random = randomFrom(seed);
        const members = createMembers(count);
        const pick = (): Holder => members[Math.floor(random() * members.length)] as Holder;
        const model = new Model(20_000);
        for (let i = 0; i < 200; i += 1) {
          if (random() < 0.3) for (let n = 0; n < 50; n += 1) model.close(pick());
          else model.fill(pick());
        }
        for (const member of members) model.fill(member);
        for (const newcomer of NEWCOMERS) expect(model.fill(newcomer, countFew(20_000))).toBe(16);
      }
    },
  );

  test("[SK-2] only holders with few connections use the connections reserved for them", () => {
    for (let seed = 1; seed <= 200; seed += 1) {
      const random = randomFrom(seed);
      const limit = 1 + Math.floor(random() * 300);
      const members = createMembers(1 + Math.floor(random() * 6));
      const model = new Model(limit);
      for (let i = 0; i < 600; i += 1) {
        const member = members[Math.floor(random() * members.length)] as Holder;
        if (random() < 0.7) model.open(member);
        else model.close(member);
        const [people, machines] = [model.countAll(false), model.countAll(true)];
        const reservedCount = Math.floor(limit / 4);
        for (const others of [people, machines]) {
          const free = limit - people - machines - Math.max(0, reservedCount - others);
          expect({ seed, i, isReserveFree: free >= countReservedForFew(limit) - model.countHeldAsFew() }).toMatchObject(
            {
              isReserveFree: true,
            },
          );
        }
      }
    }
  });

  test("[SK-2] an owner's agents can all reconnect after members with many connections took their places", () => {
    const model = new Model(20_000);
    const agents = { who: "agent", owner: "agents of a large team" };
    expect(model.fill(agents, 800)).toBe(800);
    const attackers = createMembers(2);
    for (const attacker of attackers) model.fill(attacker);
    for (let i = 0; i < 800; i += 1) model.close(agents);
    for (const attacker of attackers) model.fill(attacker);
    expect(model.fill(agents, 800)).toBe(800);
  });
});

test("[SK-2] another member and a new agent connect while two members open as many WebSockets as possible", async () => {
  await using server = await startTestServer({ clock: systemClock, env: { SLIPWAY_MAX_CONNECTIONS: "32" } });
  const { agent_token, owner_token, organization_id } = await seedAgent(server);
  const [first, second, third] = [
    await seedUser(server, { organization_id }),
    await seedUser(server, { organization_id }),
    await seedUser(server, { organization_id }),
  ];
  using connections = new DisposableStack();
  const open = async (path: string, token: string): Promise<string> => {
    const connection = connections.use(new RawConnection(server.url));
    connection.send(handshake(path, { "Service-Session-Token": token }));
    return (await connection.until((text) => text.includes("\r\n\r\n"))).slice(9, 12);
  };
  const watch = ({ token }: { token: string }): Promise<string> => open("/api/v2/workspaces/watch", token);
  const openCounts: number[] = [];
  for (const member of [first, second]) {
    let count = 0;
    while ((await watch(member)) === "101") count += 1;
    openCounts.push(count);
  }
  expect(openCounts).toEqual([10, 5]);
  expect(getContext(server).sockets.counts.open).toBe(15);
  expect([await watch(third), await watch({ token: owner_token })]).toEqual(["101", "101"]);
  expect(await open("/api/v2/workspaceagents/me/rpc", agent_token)).toBe("101");
  expect((await new Client(server.url, owner_token).fetch("GET", "/api/v2/users/me")).status).toBe(200);
});
