// Invalid data on the sockets of agents and terminals of a running server: random, truncated, too large, out of order. The server closes the
// sender's socket with a reason. Memory stays flat, and another agent, its tunnel and a terminal continue.
import { describe, expect, test } from "bun:test";
import { uuid } from "#base/ids.ts";
import { encodeHeader, FLAG, FRAME } from "#src/wire/yamux-frame.ts";
import { forFile } from "#test/support/for-file.ts";
import { getContext, seedAgent } from "#test/support/seed.ts";
import { startReachableAgent, TestTerminal } from "./reach.ts";
import { connectAgent } from "./rpc-agent.ts";

const ROUNDS = 24;

const world = await forFile(startReachableAgent());
const victim = await seedAgent(world.server);

/** Creates a random number generator with a seed, so that a failure can be reproduced. */
const createRandom = (seed: number) => {
  let state = seed;
  return (limit: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
};
type RandomInt = ReturnType<typeof createRandom>;

const randomBytes = (next: RandomInt, maxLength: number): Uint8Array<ArrayBuffer> => {
  const bytes = new Uint8Array(next(maxLength));
  for (let i = 0; i < bytes.length; i += 1) bytes[i] = next(256);
  return bytes;
};

/** A header that cannot be parsed, because its version is unknown. */
const BAD_VERSION = new Uint8Array(12).fill(0xee);
const createFrame = (type: number, flags: number, stream: number, length: number): Uint8Array<ArrayBuffer> =>
  new Uint8Array(encodeHeader(type as 0, flags, stream, length));

/** The kinds of violations, each with the messages to send. */
const VIOLATIONS: Record<string, (next: RandomInt) => (Uint8Array<ArrayBuffer> | string)[]> = {
  "random bytes": (next) => [randomBytes(next, 400), BAD_VERSION, randomBytes(next, 400), BAD_VERSION],
  // Only the version of the first frame arrives, so the server reads the next frame as the remainder of its header.
  "a frame cut off, then another": () => [
    createFrame(FRAME.data, FLAG.syn, 1, 100).slice(0, 1),
    BAD_VERSION,
    BAD_VERSION,
  ],
  "more than any window": () => {
    const head = createFrame(FRAME.data, FLAG.syn, 1, 0xffff_fff0);
    return [head, ...Array.from({ length: 80 }, () => new Uint8Array(16_384).fill(0xee))];
  },
  "data for an unknown stream, and unrequested responses": (next) => [
    createFrame(FRAME.window, FLAG.ack, 9 + 2 * next(90), 4),
    createFrame(FRAME.ping, FLAG.ack, 0, next(1000)),
    createFrame(FRAME.data, FLAG.fin, 11, 0),
    BAD_VERSION,
  ],
  "a stream opened twice": () => [
    createFrame(FRAME.window, FLAG.syn, 1, 0),
    createFrame(FRAME.window, FLAG.syn, 1, 0),
    BAD_VERSION,
  ],
  "a stream of the wrong side": () => [createFrame(FRAME.window, FLAG.syn, 0, 0), BAD_VERSION],
  "nonsense inside a stream that is opened correctly": (next) => {
    const body = randomBytes(next, 400);
    return [createFrame(FRAME.window, FLAG.syn, 1, 0), createFrame(FRAME.data, 0, 1, body.length), body, BAD_VERSION];
  },
  "text instead of bytes": () => ["hello", BAD_VERSION],
};

/** Sends the messages on a new socket and returns how the server closed it. */
const attack = async (path: string, token: string, messages: readonly (Uint8Array<ArrayBuffer> | string)[]) => {
  const url = Object.assign(new URL(path, world.server.url), { protocol: "ws:" });
  const socket = new WebSocket(url, { headers: { "Service-Session-Token": token } } as never);
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.onclose = ({ code, reason }) => resolve({ code, reason });
  });
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error("the server refused the socket"));
  });
  for (const message of messages) if (socket.readyState === WebSocket.OPEN) socket.send(message);
  return closed;
};

/** Checks that a terminal of the other agent still responds after the action. */
const checkResponsive = async (action: () => Promise<void>): Promise<void> => {
  using terminal = await TestTerminal.open(world, { command: "cat" });
  await action();
  const marker = uuid();
  terminal.sendInput({ data: `${marker}\n` });
  await terminal.until(new RegExp(marker));
  const { status } = await world.owner.get<{ status: string }>(world.path("").slice(0, -1));
  expect(status).toBe("connected");
};

const getHeapUsed = (): number => {
  Bun.gc(true);
  return process.memoryUsage().heapUsed;
};

describe("invalid data", () => {
  test.each(["rpc?version=2.10", "tunnel"])(
    "[AG-21][TN-7] on %s closes only that connection, with a reason, while memory stays flat",
    async (name) => {
      const path = `/api/v2/workspaceagents/me/${name}`;
      const violations = Object.entries(VIOLATIONS);
      const runRound = async (seed: number): Promise<void> => {
        const [violation, createMessages] = violations[seed % violations.length] as (typeof violations)[number];
        const { code, reason } = await attack(path, victim.agent_token, createMessages(createRandom(seed)));
        expect([violation, seed, [1002, 1003, 1008, 1009].includes(code), reason.length > 0]).toEqual([
          violation,
          seed,
          true,
          true,
        ]);
      };
      await checkResponsive(async () => {
        for (let seed = 0; seed < violations.length; seed += 1) await runRound(seed);
        const before = getHeapUsed();
        for (let seed = violations.length; seed < violations.length + ROUNDS; seed += 1) await runRound(seed);
        expect(getHeapUsed() - before).toBeLessThan(16 * 1024 * 1024);
      });
      await getContext(world.server).agents.ask(victim.agent_id, "settle", {});
      await using agent = await connectAgent(world.server, victim.agent_token);
      expect((await agent.agent.getManifest({})).agentName).toBe("main");
    },
  );

  test("[AG-21] in a call ends its stream, but not the connection", async () => {
    await using agent = await connectAgent(world.server, victim.agent_token);
    for (let seed = 1; seed <= ROUNDS; seed += 1) {
      const randomInt = createRandom(seed);
      const calls = [
        () =>
          agent.agent.batchCreateLogs({
            logSourceId: randomBytes(randomInt, 40),
            logs: [{ output: "x", level: 77 as 1 }],
          }),
        () => agent.agent.updateAppStatus({ slug: "\0".repeat(randomInt(9000)), state: 9 as 0 }),
        () => agent.agent.batchUpdateAppHealths({ updates: [{ id: randomBytes(randomInt, 40), health: 99 as 1 }] }),
        () => agent.agent.createSubAgent({ name: "x".repeat(randomInt(100_000) + 100) }),
        () => agent.agent.deleteSubAgent({ id: randomBytes(randomInt, 15) }),
      ];
      const failed = await (calls[randomInt(calls.length)] as () => Promise<unknown>)().then(
        () => false,
        () => true,
      );
      expect([seed, failed]).toEqual([seed, true]);
    }
    expect((await agent.agent.getManifest({})).agentName).toBe("main");
  });

  test("[TM-13] into a terminal closes that client with a reason; other clients of the terminal continue", async () => {
    using otherClient = await TestTerminal.open(world, { command: "cat" });
    const path = world.path(`pty?reconnect=${otherClient.id}`);
    const inputs: ((next: RandomInt) => (Uint8Array<ArrayBuffer> | string)[])[] = [
      (next) => [Uint8Array.of(1, ...randomBytes(next, 300))],
      () => ['{"data":"x"}', "]"],
      () => ["[1,2,3]"],
      () => ['"text"'],
      () => ['{"data":', "}"],
      () => [`{"data":"${"y".repeat(700_000)}`, "y".repeat(700_000)],
      () => [`${'{"a":'.repeat(100_000)}1`, "}".repeat(100_000)],
    ];
    for (let seed = 0; seed < 2 * inputs.length; seed += 1) {
      const createMessages = inputs[seed % inputs.length] as (typeof inputs)[number];
      const { code, reason } = await attack(path, world.seeded.owner_token, [
        ...createMessages(createRandom(seed)),
        "]",
      ]);
      expect([seed, [1002, 1003, 1008, 1009].includes(code), reason.length > 0]).toEqual([seed, true, true]);
    }
    otherClient.sendInput({ height: -1, width: 1e300, data: "still here\n" });
    await otherClient.until(/still here/);
  });
});
