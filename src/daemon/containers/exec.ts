// Runs programs inside a container with the exec calls of its engine: attached to a stream, to completion, or in the background.
import type { Clock } from "#base/clock.ts";
import { type Duplex, HttpConnection } from "#src/wire/index.ts";
import { connectSocket, type SocketTarget } from "../connection/tunnel-socket.ts";
import type { ContainerEngine } from "./engine.ts";

export type ContainerProgram = {
  container: string;
  /** Empty for the container's default user. */
  user: string;
  command: readonly string[];
  env?: Readonly<Record<string, string>>;
  directory?: string;
};

type Deps = { readonly engine: ContainerEngine; readonly clock: Clock };

const MAX_OUTPUT_BYTES = 64 * 1024;
const HEADER_BYTES = 8;
const STDERR = 2;

/** Connects to the streams of a program that was created with them attached. Throws Error with the engine's message. */
export const attachExec = async ({ engine, clock }: Deps, exec: string, tty: boolean): Promise<Duplex> => {
  const connection = new HttpConnection(await connectSocket(toTarget(engine), clock));
  const answer = await connection.upgrade({
    method: "POST",
    path: `${await engine.prefix()}/exec/${exec}/start`,
    headers: [
      ["host", "docker"],
      ["connection", "Upgrade"],
      ["upgrade", "tcp"],
      ["content-type", "application/json"],
    ],
    body: new TextEncoder().encode(JSON.stringify({ Detach: false, Tty: tty })),
  });
  if (!("response" in answer)) return answer.stream;
  const responseText = await answer.response.text(MAX_OUTPUT_BYTES);
  throw new Error(`The container engine starts no program: ${responseText.trim() || answer.response.status}`);
};

/**
 * Runs a program to completion with this input and returns its output, at most 64 KiB. Throws Error with the end of the output if the
 * program fails.
 */
export const runInContainer = async (deps: Deps, program: ContainerProgram, input = ""): Promise<string> => {
  const exec = await createExec(deps, program, { attached: true });
  const stream = await attachExec(deps, exec, false);
  await stream.write(new TextEncoder().encode(input));
  await stream.end();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of stream) {
    if (size < MAX_OUTPUT_BYTES) chunks.push(chunk);
    size += chunk.byteLength;
  }
  const output = readFrames(Buffer.concat(chunks)).trim();
  const code = await loadExitCode(deps.engine, exec);
  if (code === 0) return output;
  throw new Error(output.slice(-500) || `The program ended with code ${code}.`);
};

/** Returns the exit code of a program; null while it is running. */
export const loadExitCode = async (engine: ContainerEngine, exec: string): Promise<number | null> =>
  (await engine.json<{ ExitCode: number | null }>("GET", `/exec/${exec}/json`)).ExitCode;

/** Starts a program in the background and returns its ID. */
export const startInBackground = async (deps: Deps, program: ContainerProgram): Promise<string> => {
  const exec = await createExec(deps, program, { attached: false });
  await (await deps.engine.call("POST", `/exec/${exec}/start`, { Detach: true, Tty: false })).text();
  return exec;
};

/** True while a background program is running. */
export const isExecRunning = async (engine: ContainerEngine, exec: string): Promise<boolean> => {
  const response = await engine.call("GET", `/exec/${exec}/json`, undefined, [404]);
  const { Running = false } = (await response.json()) as { Running?: boolean };
  return Running;
};

/** Creates a program without starting it and returns its ID. Throws AppError with the engine's message. */
export const createExec = async (
  { engine }: Deps,
  program: ContainerProgram,
  { attached, tty = false }: { attached: boolean; tty?: boolean },
): Promise<string> => {
  const { container, user, command, env = {}, directory } = program;
  const createdExec = await engine.json<{ Id: string }>("POST", `/containers/${encodeURIComponent(container)}/exec`, {
    AttachStdin: attached,
    AttachStdout: attached,
    AttachStderr: attached,
    Tty: tty,
    Cmd: command,
    Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
    ...(user === "" ? {} : { User: user }),
    ...(directory === undefined ? {} : { WorkingDir: directory }),
  });
  return encodeURIComponent(createdExec.Id);
};

/** Yields the output of a program without a terminal as it arrives, decoded from the engine's frames. */
export async function* readOutputs(
  stream: AsyncIterable<Uint8Array>,
): AsyncGenerator<{ readonly isError: boolean; readonly bytes: Uint8Array }> {
  const header = Buffer.alloc(HEADER_BYTES);
  let headerLength = 0;
  let remaining = 0;
  for await (const chunk of stream) {
    for (let offset = 0; offset < chunk.byteLength; ) {
      if (remaining === 0) {
        const length = Math.min(HEADER_BYTES - headerLength, chunk.byteLength - offset);
        header.set(chunk.subarray(offset, offset + length), headerLength);
        headerLength += length;
        offset += length;
        if (headerLength < HEADER_BYTES) continue;
        headerLength = 0;
        remaining = header.readUInt32BE(4);
        continue;
      }
      const bytes = chunk.subarray(offset, offset + remaining);
      offset += bytes.byteLength;
      remaining -= bytes.byteLength;
      yield { isError: header[0] === STDERR, bytes };
    }
  }
}

/**
 * Returns the text in the engine's frames, which it sends for programs without a terminal: stream number, three zeros, length as 32 bits,
 * bytes. The last frame may be truncated.
 */
export const readFrames = (framed: Buffer): string => {
  const parts: Buffer[] = [];
  for (let offset = 0; offset + HEADER_BYTES <= framed.length; ) {
    const end = offset + HEADER_BYTES + framed.readUInt32BE(offset + 4);
    parts.push(framed.subarray(offset + HEADER_BYTES, end));
    offset = end;
  }
  return Buffer.concat(parts).toString("utf8");
};

const toTarget = ({ address }: ContainerEngine): SocketTarget => {
  if (address.socket !== undefined) return { unix: address.socket };
  const { hostname, port, protocol } = new URL(address.base);
  const tls = protocol === "https:";
  return { hostname, port: Number(port) || (tls ? 443 : 80), tls };
};
