// Long-running sessions of the genuine OpenSSH client that report wrong data: a command that counts, echoed lines, an idle shell, bulk data
// in both directions, and an editor's requests over a forwarded socket. Each records its longest silence.
import type { Subprocess } from "bun";

/** How OpenSSH reaches the workspace. */
export type Shell = {
  readonly config: string;
  readonly host: string;
  readonly env: Readonly<Record<string, string>>;
  /** A folder of this machine that the workspace also sees. */
  readonly folder: string;
};

export type Session = {
  readonly name: string;
  /** Lines, requests or bytes received correctly. */
  readonly received: number;
  /** The longest time without any data, in ms. */
  readonly silenceMs: number;
  /** Ends the session properly. Returns the problems. */
  finish(): Promise<string[]>;
  kill(): void;
};

type Ssh = Subprocess<"pipe", "pipe", "pipe">;

const ssh = ({ config, host, env }: Shell, args: readonly string[], command: readonly string[]): Ssh =>
  Bun.spawn(["ssh", "-F", config, ...args, host, ...command], { env, stdio: ["pipe", "pipe", "pipe"] });

/** The base of all kinds of sessions. `work` runs until the session ends, and throws the problem. */
abstract class RunningSession implements Session {
  abstract readonly name: string;
  received = 0;
  silenceMs = 0;
  protected isEnding = false;
  readonly #child: Ssh;
  readonly #problems: string[] = [];
  readonly #working: Promise<void>;
  #receivedAt = performance.now();

  constructor(child: Ssh) {
    this.#child = child;
    this.#working = Promise.resolve()
      .then(() => this.work(child))
      .catch((error: unknown) => void this.#problems.push(error instanceof Error ? error.message : String(error)));
    void child.exited.then((code) => {
      if (!this.isEnding) this.#problems.push(`the session ended unexpectedly with ${child.signalCode ?? code}`);
    });
  }

  protected abstract work(child: Ssh): Promise<void>;
  protected abstract end(child: Ssh): void;

  /** Counts correctly received data. */
  protected recordReceived(count: number): void {
    const now = performance.now();
    this.silenceMs = Math.max(this.silenceMs, now - this.#receivedAt);
    this.#receivedAt = now;
    this.received += count;
  }

  async finish(): Promise<string[]> {
    this.isEnding = true;
    this.end(this.#child);
    await this.#working;
    const [code, errors] = await Promise.all([this.#child.exited, this.#child.stderr.text()]);
    if (code !== 0 || errors !== "") this.#problems.push(`the session ended with ${code}: ${errors.trim()}`);
    return this.#problems.map((problem) => `${this.name}, after ${this.received}: ${problem}`);
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }
}

/** Yields the lines of a program's output. */
const readLines = async function* (stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let incompleteLine = "";
  for await (const chunk of stream) {
    const lines = (incompleteLine + decoder.decode(chunk, { stream: true })).split("\n");
    incompleteLine = lines.pop() ?? "";
    yield* lines;
  }
  if (incompleteLine !== "") throw new Error(`the output ended within a line: ${incompleteLine}`);
};

/** A command in the workspace that counts until a file exists. */
export class CountingSession extends RunningSession {
  readonly name = "a command that counts";
  readonly #endFile: string;

  constructor(shell: Shell, number: number) {
    const endFile = `${shell.folder}/enough-${number}`;
    const loop = `i=0; while [ ! -e ${endFile} ]; do echo $i; i=$((i+1)); sleep 1; done; echo end $i`;
    super(ssh(shell, ["-T"], [loop]));
    this.#endFile = endFile;
  }

  protected async work({ stdout }: Ssh): Promise<void> {
    let hasEnded = false;
    for await (const line of readLines(stdout)) {
      if (line !== `${this.received}` && line !== `end ${this.received}`)
        throw new Error(`the command printed ${line}`);
      hasEnded = line.startsWith("end");
      this.recordReceived(hasEnded ? 0 : 1);
    }
    if (!hasEnded) throw new Error("the last line of the command is missing");
  }

  protected end(): void {
    void Bun.write(this.#endFile, "");
  }
}

/** Lines that are typed and echoed. */
export class TypingSession extends RunningSession {
  readonly name = "echoed lines";

  constructor(shell: Shell) {
    super(ssh(shell, ["-T"], ["cat"]));
  }

  protected async work({ stdin, stdout }: Ssh): Promise<void> {
    const lines = readLines(stdout);
    while (!this.isEnding) {
      const line = `${this.received} ${"x".repeat(this.received % 200)}`;
      stdin.write(`${line}\n`);
      await stdin.flush();
      const { value } = await lines.next();
      if (value !== line) throw new Error(`sent ${line}, received ${value}`);
      this.recordReceived(1);
      await Bun.sleep(500);
    }
    await stdin.end();
    const last = await lines.next();
    if (!last.done) throw new Error(`an unexpected line: ${last.value}`);
  }

  protected end(): void {
    // `work` notices the end.
  }
}

/** An idle shell: it responds once at the beginning, is left alone, and responds again at the end. */
export class IdleSession extends RunningSession {
  readonly name = "an idle session";
  readonly #ending = Promise.withResolvers<void>();

  constructor(shell: Shell) {
    super(ssh(shell, ["-T"], ["cat"]));
  }

  protected async work({ stdin, stdout }: Ssh): Promise<void> {
    const lines = readLines(stdout);
    const exchange = async (line: string): Promise<void> => {
      stdin.write(`${line}\n`);
      await stdin.flush();
      const { value } = await lines.next();
      if (value !== line) throw new Error(`sent ${line}, received ${value}`);
      this.recordReceived(1);
    };
    await exchange("before");
    await this.#ending.promise;
    await exchange("after");
    await stdin.end();
    const last = await lines.next();
    if (!last.done) throw new Error(`an unexpected line: ${last.value}`);
  }

  protected end(): void {
    this.#ending.resolve();
  }
}

const BLOCK_BYTES = 64 * 1024;
/** Returns the block of a fixed stream that starts at this offset, in words of four bytes. */
const createBlock = (offset: number): Uint8Array => {
  const words = new Uint32Array(BLOCK_BYTES / 4);
  for (let i = 0; i < words.length; i += 1) words[i] = Math.imul(offset + i + 1, 2_654_435_761) ^ ((offset + i) >>> 15);
  return new Uint8Array(words.buffer);
};

/** Bytes in both directions, sent at a fixed rate. */
export class BulkSession extends RunningSession {
  readonly name = "bytes both ways";
  readonly #rate: number;

  constructor(shell: Shell, rate: number) {
    super(ssh(shell, ["-T"], ["cat"]));
    this.#rate = rate;
  }

  protected async work({ stdin, stdout }: Ssh): Promise<void> {
    let sent = 0;
    const sending = (async () => {
      const started = performance.now();
      while (!this.isEnding) {
        stdin.write(createBlock(sent / 4));
        await stdin.flush();
        sent += BLOCK_BYTES;
        const ahead = (sent / this.#rate) * 1_000 - (performance.now() - started);
        if (ahead > 0) await Bun.sleep(ahead);
      }
      await stdin.end();
    })();
    for await (const chunk of stdout) {
      for (let offset = 0; offset < chunk.byteLength; ) {
        const inBlock = this.received % BLOCK_BYTES;
        const expected = createBlock((this.received - inBlock) / 4).subarray(
          inBlock,
          inBlock + chunk.byteLength - offset,
        );
        if (Buffer.compare(expected, chunk.subarray(offset, offset + expected.byteLength)) !== 0)
          throw new Error("a byte is wrong");
        offset += expected.byteLength;
        this.recordReceived(expected.byteLength);
      }
    }
    await sending;
    if (this.received !== sent) throw new Error(`${sent} bytes were sent and ${this.received} were returned`);
  }

  protected end(): void {
    // `work` notices the end.
  }
}

/** An editor's requests to its server in the workspace: a forwarded socket, one connection, requests and pauses of all lengths. */
export class EditingSession extends RunningSession {
  readonly name = "requests of an editor";
  readonly #path: string;
  readonly #random: () => number;
  readonly #server: { stop(): void };

  constructor(shell: Shell, random: () => number) {
    const [localPath, remotePath] = [`${shell.folder}/editor-here`, `${shell.folder}/editor-there`];
    const server = Bun.listen<Uint8Array[]>({
      unix: remotePath,
      socket: {
        open(socket) {
          socket.data = [];
        },
        data(socket, bytes) {
          socket.data.push(bytes.slice());
          forwardData(socket);
        },
        drain: forwardData,
      },
    });
    super(
      ssh(
        shell,
        ["-T", "-o", "ExitOnForwardFailure=yes", "-L", `${localPath}:${remotePath}`],
        ["echo ready; exec cat"],
      ),
    );
    this.#path = localPath;
    this.#random = random;
    this.#server = server;
  }

  protected async work({ stdin, stdout }: Ssh): Promise<void> {
    await readLines(stdout).next();
    let wake = (): void => {};
    let chunks: Uint8Array[] = [];
    let bytes = 0;
    let hasClosed = false;
    const socket = await Bun.connect({
      unix: this.#path,
      socket: {
        data(_, chunk) {
          chunks.push(chunk.slice());
          bytes += chunk.byteLength;
          wake();
        },
        close() {
          hasClosed = true;
          wake();
        },
      },
    });
    while (!this.isEnding) {
      const request = createBlock(Math.floor(this.#random() * 1e6)).subarray(
        0,
        20 + Math.floor(this.#random() ** 4 * 30_000),
      );
      if (socket.write(request) !== request.byteLength)
        throw new Error("a request did not fit into the socket's buffer");
      while (bytes < request.byteLength && !hasClosed) await new Promise<void>((resolve) => (wake = resolve));
      if (Buffer.compare(Buffer.concat(chunks), request) !== 0) throw new Error("a response is wrong or missing");
      chunks = [];
      bytes = 0;
      this.recordReceived(1);
      await Bun.sleep(this.#random() < 0.7 ? this.#random() * 200 : this.#random() * 2_000);
    }
    socket.end();
    await stdin.end();
  }

  protected end(): void {
    this.#server.stop();
  }
}

const forwardData = (socket: Bun.Socket<Uint8Array[]>): void => {
  for (let first = socket.data[0]; first; first = socket.data[0]) {
    const sent = socket.write(first);
    if (sent < first.byteLength) {
      socket.data[0] = first.subarray(Math.max(0, sent));
      return;
    }
    socket.data.shift();
  }
};
