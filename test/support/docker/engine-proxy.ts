// Stands between a server and a Docker Engine, and takes the engine away at a named call: before the engine has it, in the middle of its files, or
// once it is done and not yet answered.
import { connect, createServer, type Server, type Socket } from "node:net";

/** `asked`: the engine never gets the call. `copying`: some of its files are through. `done`: the engine has done it, and its answer is lost. */
export type Moment = "asked" | "copying" | "done";

export type Cut = {
  /** `METHOD /path`, without the version. */
  readonly call: RegExp;
  readonly moment: Moment;
  /** At the n-th of such calls; the first by default. */
  readonly nth?: number;
  /** What is done to the engine then; by default nothing is, and it cannot be reached. */
  readonly act?: () => void;
};

type Armed = Cut & { readonly happened: () => void };

/** So many bytes are in the middle of the files of a test. */
const IN_THE_MIDDLE = 256 * 1024;

export class EngineProxy implements Disposable {
  readonly host: string;
  readonly #server: Server;
  readonly #open = new Set<Socket>();
  #cut: Armed | undefined;
  #isDown = false;
  /** How many calls have come that the cut is for. */
  #seen = 0;

  /** Listens on `socket` for the engine at `engine`, both paths. */
  constructor(socket: string, engine: string) {
    this.host = `unix://${socket}`;
    this.#server = createServer((client) => this.#serve(client, engine)).listen(socket);
  }

  /** Takes the engine away at this call, once; resolves when that has happened. It stays away until `mend`. */
  cut(cut: Cut): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#cut = Object.assign({ happened: resolve }, cut);
    this.#seen = 0;
    return promise;
  }

  /** The engine can be reached again. */
  mend(): void {
    this.#isDown = false;
    this.#cut = undefined;
  }

  [Symbol.dispose](): void {
    for (const socket of this.#open) socket.destroy();
    this.#server.close();
  }

  #serve(client: Socket, path: string): void {
    if (this.#isDown) {
      client.destroy();
      return;
    }
    const engine = connect(path);
    for (const socket of [client, engine]) {
      this.#open.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => this.#open.delete(socket));
    }
    client.on("close", () => engine.destroy());
    engine.on("close", () => client.destroy());
    // One call after the other: the bytes of one are those until the next.
    let call = "";
    let bytes = 0;
    const heard = (moment: Moment): boolean => {
      const cut = this.#cut;
      if (!cut || cut.moment !== moment || !cut.call.test(call) || this.#seen < (cut.nth ?? 1)) return false;
      this.#takeAway(cut);
      return true;
    };
    const counted = (chunk: Buffer): boolean => {
      bytes += chunk.length;
      return bytes > IN_THE_MIDDLE && heard("copying");
    };
    client.on("data", (chunk: Buffer) => {
      const [, method, target] =
        /^(GET|POST|PUT|DELETE) (?:\/v[\d.]+)?(\/[^ ?]*)/.exec(chunk.toString("latin1", 0, 512)) ?? [];
      if (method !== undefined) {
        call = `${method} ${target}`;
        bytes = 0;
        if (this.#cut?.call.test(call)) this.#seen += 1;
        if (heard("asked")) return;
      }
      if (!counted(chunk)) pass(chunk, client, engine);
    });
    engine.on("data", (chunk: Buffer) => {
      if (!heard("done") && !counted(chunk)) pass(chunk, engine, client);
    });
  }

  #takeAway({ act, happened }: Armed): void {
    this.#cut = undefined;
    this.#isDown = true;
    act?.();
    for (const socket of this.#open) socket.destroy();
    happened();
  }
}

const pass = (chunk: Buffer, from: Socket, to: Socket): void => {
  if (to.write(chunk)) return;
  from.pause();
  to.once("drain", () => from.resume());
};
