// A proxy between nodes and their database that counts the bytes in both directions, and how often a node sends something after the
// database has sent something.
import type { Socket } from "bun";

type Side = {
  peer: Promise<Socket<Side>>;
  isNode: boolean;
  waiting: Promise<unknown>;
  isSending: boolean;
  resume?(): void;
};

export const startCountingProxy = (target: URL) => {
  const counts = { sent: 0, received: 0, round_trips: 0 };
  const count = (side: Side, bytes: number, peer: Side): void => {
    if (!side.isNode) {
      counts.received += bytes;
      peer.isSending = false;
      return;
    }
    counts.sent += bytes;
    if (!side.isSending) counts.round_trips++;
    side.isSending = true;
  };
  const pipe = {
    data(socket: Socket<Side>, bytes: Buffer): void {
      const side = socket.data;
      const copy = Buffer.from(bytes);
      side.waiting = side.waiting.then(async () => {
        const peer = await side.peer;
        count(side, copy.length, peer.data);
        for (let offset = 0; peer.readyState === 1; ) {
          offset += Math.max(0, peer.write(copy.subarray(offset)));
          if (offset === copy.length) break;
          await new Promise<void>((resolve) => {
            peer.data.resume = resolve;
          });
        }
      });
    },
    drain: ({ data }: Socket<Side>): void => data.resume?.(),
    close({ data: side }: Socket<Side>): void {
      side.resume?.();
      side.waiting = side.waiting.then(async () => void (await side.peer).end());
    },
    error(): void {},
  };
  const listener = Bun.listen<Side>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(node) {
        const data: Side = {
          peer: Promise.resolve(node),
          isNode: false,
          waiting: Promise.resolve(),
          isSending: false,
        };
        const peer = Bun.connect<Side>({ hostname: target.hostname, port: Number(target.port), data, socket: pipe });
        node.data = { peer, isNode: true, waiting: Promise.resolve(), isSending: false };
      },
      ...pipe,
    },
  });
  const url = new URL(target);
  url.host = `127.0.0.1:${listener.port}`;
  return { url, counts, stop: () => listener.stop(true) };
};
