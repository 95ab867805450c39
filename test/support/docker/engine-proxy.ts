// A proxy between a server and a Docker Engine that disconnects the engine at a given call: before the engine receives it, in the middle of
// a file transfer, or after the engine has handled it but before the response.
import { connect, createServer, type Server, type Socket } from "node:net";

/**
 * `before`: the engine never receives the call. `copying`: part of the files were transferred. `after`: the engine has handled the call,
 * and the response is lost.
 */
export type Moment = "before" | "copying" | "after";

export type Outage = {
  /** `METHOD /path`, without the version. */
  readonly call: RegExp;
  readonly moment: Moment;
  /** Which of the matching calls; by default the first. */
  readonly nth?: number;
  /** Is called at that moment, for example to kill the engine; by default, the engine only becomes unreachable. */
  readonly act?: () => void;
};

type ArmedOutage = Outage & { readonly happened: () => void };

/** After this many bytes, the files of a test are partly transferred. */
const PARTIAL_BYTES = 256 * 1024;

export class EngineProxy implements Disposable {
  readonly host: string;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #cut: ArmedOutage | undefined;
  #isDown = false;
  /** Number of matching calls since `cut`. */
  #matchCount = 0;

  /** Listens on `socket` and forwards to `engine`; both are paths. */
  constructor(socket: string, engine: string) {
    this.host = `unix://${socket}`;
    this.#server = createServer((client) => this.#serve(client, engine)).listen(socket);
  }

  /** Disconnects the engine at this call, once; resolves afterwards. The engine stays unreachable until `reconnect`. */
  cut(outage: Outage): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#cut = Object.assign({ happened: resolve }, outage);
    this.#matchCount = 0;
    return promise;
  }

  /** Makes the engine reachable again. */
  reconnect(): void {
    this.#isDown = false;
    this.#cut = undefined;
  }

  [Symbol.dispose](): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }

  #serve(client: Socket, path: string): void {
    if (this.#isDown) {
      client.destroy();
      return;
    }
    const engine = connect(path);
    for (const socket of [client, engine]) {
      this.#sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => this.#sockets.delete(socket));
    }
    client.on("close", () => engine.destroy());
    engine.on("close", () => client.destroy());
    // Calls are sequential: all bytes up to the next head belong to the same call.
    let call = "";
    let bytes = 0;
    const triggerAt = (moment: Moment): boolean => {
      const outage = this.#cut;
      if (!outage || outage.moment !== moment || !outage.call.test(call) || this.#matchCount < (outage.nth ?? 1))
        return false;
      this.#disconnect(outage);
      return true;
    };
    const countBytes = (chunk: Buffer): boolean => {
      bytes += chunk.length;
      return bytes > PARTIAL_BYTES && triggerAt("copying");
    };
    client.on("data", (chunk: Buffer) => {
      const [, method, target] =
        /^(GET|POST|PUT|DELETE) (?:\/v[\d.]+)?(\/[^ ?]*)/.exec(chunk.toString("latin1", 0, 512)) ?? [];
      if (method !== undefined) {
        call = `${method} ${target}`;
        bytes = 0;
        if (this.#cut?.call.test(call)) this.#matchCount += 1;
        if (triggerAt("before")) return;
      }
      if (!countBytes(chunk)) pass(chunk, client, engine);
    });
    engine.on("data", (chunk: Buffer) => {
      if (!triggerAt("after") && !countBytes(chunk)) pass(chunk, engine, client);
    });
  }

  #disconnect({ act, happened }: ArmedOutage): void {
    this.#cut = undefined;
    this.#isDown = true;
    act?.();
    for (const socket of this.#sockets) socket.destroy();
    happened();
  }
}

const pass = (chunk: Buffer, from: Socket, to: Socket): void => {
  if (to.write(chunk)) return;
  from.pause();
  to.once("drain", () => from.resume());
};
