// With SLIPWAY_TEST_NODES=3 and SLIPWAY_TEST_DATABASE=postgres, a test's server is three nodes behind a round-robin proxy: the active one,
// and two spares that answer reads (`cluster_reads`) and forward all other requests.
import type { Socket } from "bun";
import { type Clock, systemClock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import { passToActiveNode } from "#base/network/local-reads.ts";
import { Listener } from "#db/pg/notices/listener.ts";
import { Primary } from "#db/pg/primary.ts";
import { ReadStore } from "#db/pg/read-store.ts";
import { deriveNodeToken, makeForwardedAddressTaker } from "#src/cluster/forwarded-header.ts";
import { Forwarder } from "#src/cluster/forwarder.ts";
import { makeHostCheck } from "#src/cluster/membership.ts";
import type { Context } from "#src/context/context.ts";
import { followActiveNode, openReads } from "#src/context/open-reads.ts";
import { startReads } from "#src/server.ts";

/** True if tests' servers consist of several nodes. */
export const usesStandbyNodes = process.env.SLIPWAY_TEST_NODES === "3";

const STATE = { node: "spare", lease: "elsewhere", database: "answers", standby: "not required" } as const;

type ProxySide = {
  readonly peer: Promise<Socket<ProxySide>>;
  /** Serializes writes to the other side. */
  waiting: Promise<unknown>;
  /** Resumes after backpressure, or when the socket is closed. */
  resume?(): void;
};

/** Starts a proxy that forwards each connection to the next target. */
export const startProxy = () => {
  const targets: number[] = [];
  let nextTarget = 0;
  const listener = Bun.listen<ProxySide>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(client) {
        const port = targets[nextTarget++ % targets.length] as number;
        const peer = Bun.connect<ProxySide>({
          hostname: "127.0.0.1",
          port,
          data: { peer: Promise.resolve(client), waiting: Promise.resolve() },
          socket: PIPE,
        });
        client.data = { peer, waiting: Promise.resolve() };
      },
      ...PIPE,
    },
  });
  return { url: new URL(`http://127.0.0.1:${listener.port}/`), targets, stop: () => listener.stop(true) };
};

/** Reading from one side pauses while the other side does not accept data. */
const PIPE = {
  data(socket: Socket<ProxySide>, bytes: Buffer): void {
    const side = socket.data;
    const copy = Buffer.from(bytes);
    side.waiting = side.waiting.then(async () => {
      const peer = await side.peer;
      for (let offset = 0; peer.readyState === 1; ) {
        offset += Math.max(0, peer.write(copy.subarray(offset)));
        if (offset === copy.length) break;
        socket.pause();
        await new Promise<void>((resolve) => {
          peer.data.resume = resolve;
        });
      }
      socket.resume();
    });
  },
  drain({ data: side }: Socket<ProxySide>): void {
    side.resume?.();
  },
  close({ data: side }: Socket<ProxySide>): void {
    side.resume?.();
    side.waiting = side.waiting.then(async () => void (await side.peer).end());
  },
  error(): void {},
};

type Nodes = { readonly config: Config; readonly clock: Clock | undefined; readonly database: string };

/** Starts the two spares, and adds their forwarders and another one to the proxy's targets. */
export const startSpares = (
  context: Context,
  active: URL,
  proxy: ReturnType<typeof startProxy>,
  { config, clock = systemClock, database }: Nodes,
): AsyncDisposable => {
  const token = deriveNodeToken(context.encryption);
  const spares = [true, true, false].map((answersReads) => {
    const primary = new Primary(database);
    const listener = new Listener({ primary, clock });
    const store = new ReadStore(primary, passToActiveNode, listener);
    const { encryption } = context;
    const ctx = answersReads ? openReads({ config, clock, store, encryption }) : undefined;
    const reads =
      ctx &&
      startReads(ctx, {
        takeForwardedAddress: makeForwardedAddressTaker(token),
        ask: () => store.refreshVersions(),
        checkAnswers: true,
      });
    if (ctx) followActiveNode(store, ctx);
    const forwarder = new Forwarder({
      hostname: "127.0.0.1",
      port: 0,
      clock: systemClock,
      max_connections: config.max_connections,
      isOurs: makeHostCheck(config),
      token,
      leader: () => active.host,
      own: () => "",
      reads: () => reads && { hostname: "127.0.0.1", port: reads.port },
      state: () => STATE,
    });
    proxy.targets.push(forwarder.port);
    return { ctx, store, listener, reads, forwarder };
  });
  return {
    async [Symbol.asyncDispose]() {
      proxy.stop();
      for (const { ctx, store, listener, reads, forwarder } of spares) {
        forwarder.end();
        await reads?.stop();
        await listener.close();
        await store.close();
        ctx?.clock[Symbol.dispose]();
      }
    },
  };
};
