// Starts one server under test as a pinned process and ends it. Used for the baseline and for the product.
import { readFileSync } from "node:fs";
import { pinToCore } from "./machine.ts";

/** A server that has just started to listen may lose a request. The request is then retried. */
const ANSWER_TIMEOUT_MS = 10_000;
const START_TIMEOUT_MS = 60_000;

export interface RunningServer extends AsyncDisposable {
  url: string;
  port: number;
  pid: number;
}

export interface ServerCommand {
  command: string[];
  env: Record<string, string>;
  port: number;
  /** Path that responds with 200 as soon as the server is usable. */
  readyPath: string;
  /** Core to pin to; undefined leaves it to the system. */
  core: number | undefined;
  /** File for the server's own output. */
  logFile: string;
  /** The working directory; defaults to this process's. */
  cwd?: string;
}

/** Spawns the server and waits for its first 200. Throws with the end of its output if it exits, or does not respond for a minute. */
export async function startServer(server: ServerCommand): Promise<RunningServer> {
  const child = Bun.spawn(pinToCore(server.core, server.command), {
    env: { ...process.env, ...server.env },
    ...(server.cwd === undefined ? {} : { cwd: server.cwd }),
    stdin: "ignore",
    stdout: Bun.file(server.logFile),
    stderr: Bun.file(`${server.logFile}.err`),
  });
  const url = `http://127.0.0.1:${server.port}`;
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (!(await isResponding(url + server.readyPath))) {
    if (child.exitCode === null && performance.now() < deadline) {
      await Bun.sleep(20);
      continue;
    }
    child.kill("SIGKILL");
    const output = [server.logFile, `${server.logFile}.err`].map((file) => readFileSync(file, "utf8").slice(-2000));
    throw new Error(`${server.command.join(" ")} did not respond to ${server.readyPath}\n${output.join("\n")}`);
  }
  const stop = async (): Promise<void> => {
    child.kill("SIGTERM");
    const hasEnded = await Promise.race([child.exited.then(() => true), Bun.sleep(10_000).then(() => false)]);
    if (!hasEnded) child.kill("SIGKILL");
    await child.exited;
  };
  return { url, port: server.port, pid: child.pid, [Symbol.asyncDispose]: stop };
}

async function isResponding(url: string): Promise<boolean> {
  try {
    return (await fetch(url, { signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) })).status === 200;
  } catch {
    return false;
  }
}
