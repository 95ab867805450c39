// A database proxy whose connections can go silent: they stay open but carry nothing more, as if the other machine had failed.
import type { Socket } from "bun";

type ProxySide = { readonly peer: Promise<Socket<ProxySide>>; isSilent(): boolean; waiting: Promise<unknown> };

export const startSilentProxy = (target: URL) => {
  let silencedCount = 0;
  let openedCount = 0;
  // The amounts are small, so the socket always accepts them without backpressure.
  const pipe = {
    data({ data: side }: Socket<ProxySide>, bytes: Buffer): void {
      const copy = Buffer.from(bytes);
      side.waiting = side.waiting.then(async () => side.isSilent() || (await side.peer).write(copy));
    },
    close({ data: side }: Socket<ProxySide>): void {
      side.waiting = side.waiting.then(async () => side.isSilent() || (await side.peer).end());
    },
    error(): void {},
  };
  const listener = Bun.listen<ProxySide>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(client) {
        const connectionNumber = ++openedCount;
        const createSide = (peer: Promise<Socket<ProxySide>>): ProxySide => ({
          peer,
          isSilent: () => connectionNumber <= silencedCount,
          waiting: Promise.resolve(),
        });
        const data = createSide(Promise.resolve(client));
        const { hostname, port } = target;
        client.data = createSide(Bun.connect<ProxySide>({ hostname, port: Number(port), data, socket: pipe }));
      },
      ...pipe,
    },
  });
  const url = new URL(target);
  url.host = `127.0.0.1:${listener.port}`;
  return {
    url: url.href,
    /** Silences all connections that are open. Later connections work. */
    silence: () => {
      silencedCount = openedCount;
    },
    [Symbol.dispose]: () => void listener.stop(true),
  };
};
