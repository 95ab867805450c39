// A database proxy whose connections can go silent: they stay open, but nothing arrives any more, as with a failed machine.
import type { Socket } from "bun";

type ProxySide = { readonly other: Promise<Socket<ProxySide>>; isSilent(): boolean; waiting: Promise<unknown> };

export const startSilentProxy = (target: URL) => {
  let silenced = 0;
  let opened = 0;
  // The amounts are small, so the socket always accepts them.
  const pipe = {
    data({ data: side }: Socket<ProxySide>, bytes: Buffer): void {
      const copy = Buffer.from(bytes);
      side.waiting = side.waiting.then(async () => side.isSilent() || (await side.other).write(copy));
    },
    close({ data: side }: Socket<ProxySide>): void {
      side.waiting = side.waiting.then(async () => side.isSilent() || (await side.other).end());
    },
    error(): void {},
  };
  const listener = Bun.listen<ProxySide>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(client) {
        const number = ++opened;
        const createSide = (other: Promise<Socket<ProxySide>>): ProxySide => ({
          other,
          isSilent: () => number <= silenced,
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
    /** Silences the currently open connections; later ones work. */
    silence: () => {
      silenced = opened;
    },
    [Symbol.dispose]: () => void listener.stop(true),
  };
};
