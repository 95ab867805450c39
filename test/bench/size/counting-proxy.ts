// A proxy between nodes and their database that counts bytes in both directions, and how often a node has sent something after the
// database.
import type { Socket } from "bun";

type Side = {
  other: Promise<Socket<Side>>;
  isNode: boolean;
  waiting: Promise<unknown>;
  isAsking: boolean;
  free?(): void;
};

export const startCountingProxy = (target: URL) => {
  const counts = { sent: 0, received: 0, turns: 0 };
  const count = (side: Side, bytes: number, other: Side): void => {
    if (!side.isNode) {
      counts.received += bytes;
      other.isAsking = false;
      return;
    }
    counts.sent += bytes;
    if (!side.isAsking) counts.turns++;
    side.isAsking = true;
  };
  const pipe = {
    data(socket: Socket<Side>, bytes: Buffer): void {
      const side = socket.data;
      const copy = Buffer.from(bytes);
      side.waiting = side.waiting.then(async () => {
        const other = await side.other;
        count(side, copy.length, other.data);
        for (let at = 0; other.readyState === 1; ) {
          at += Math.max(0, other.write(copy.subarray(at)));
          if (at === copy.length) break;
          await new Promise<void>((resolve) => {
            other.data.free = resolve;
          });
        }
      });
    },
    drain: ({ data }: Socket<Side>): void => data.free?.(),
    close({ data: side }: Socket<Side>): void {
      side.free?.();
      side.waiting = side.waiting.then(async () => void (await side.other).end());
    },
    error(): void {},
  };
  const listener = Bun.listen<Side>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(node) {
        const data: Side = { other: Promise.resolve(node), isNode: false, waiting: Promise.resolve(), isAsking: false };
        const other = Bun.connect<Side>({ hostname: target.hostname, port: Number(target.port), data, socket: pipe });
        node.data = { other, isNode: true, waiting: Promise.resolve(), isAsking: false };
      },
      ...pipe,
    },
  });
  const url = new URL(target);
  url.host = `127.0.0.1:${listener.port}`;
  return { url, counts, stop: () => listener.stop(true) };
};
