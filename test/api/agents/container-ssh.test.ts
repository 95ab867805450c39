// SSH sessions inside containers: a client of the private network, a real daemon, and the fake engine, which runs the programs on this
// machine.
import { afterAll, expect, test } from "bun:test";
import ssh2 from "ssh2";
import { systemClock } from "#base/clock.ts";
import { join } from "#src/cli/client/network/join.ts";
import { AGENT_PORT } from "#src/wire/agent-dialer.ts";
import { toNodeStream } from "#src/wire/node-stream.ts";
import { forFile } from "#test/support/for-file.ts";
import { startContainerWorld } from "./containers-world.ts";

const setup = await forFile(startContainerWorld());
setup.docker.put("box");
const { agent_id } = setup.world.seeded;
const network = join(setup.world.owner, agent_id, { clock: systemClock });
afterAll(() => network[Symbol.asyncDispose]());

const connectSsh = async (): Promise<ssh2.Client> => {
  const connection = await network.peer.dial(agent_id, AGENT_PORT.ssh);
  const client = new ssh2.Client();
  const ready = new Promise<void>((resolve, reject) => {
    client.once("ready", () => resolve());
    client.once("error", reject);
  });
  client.connect({ sock: toNodeStream(connection) as never, username: "anybody", authHandler: ["none"] });
  await ready;
  return client;
};

type Session = { env: Record<string, string>; pty?: object; input?: string; signal?: string };
const runCommand = async (command: string, { env, pty, input = "", signal }: Session) => {
  const client = await connectSsh();
  const result = await new Promise<{ code: number; out: string; err: string }>((resolve, reject) =>
    // Add the listeners before anything else: a program that fails immediately reports it in the packet that accepts the command.
    client.exec(command, { env, ...(pty ? { pty } : {}) } as never, (error, channel) => {
      if (error) {
        reject(error);
        return;
      }
      const outcome = { code: -1, out: "", err: "" };
      channel.on("data", (chunk: Buffer) => {
        outcome.out += chunk;
        if (signal && outcome.out.includes("ready")) channel.signal(signal);
      });
      channel.stderr.on("data", (chunk: Buffer) => {
        outcome.err += chunk;
      });
      channel.once("exit", (code: number) => {
        outcome.code = code;
      });
      channel.once("close", () => resolve(outcome));
      if (input !== "") channel.end(input);
    }),
  );
  client.end();
  return result;
};
const BOX = { CODER_CONTAINER: "box", CODER_CONTAINER_USER: "dev" };

test("[WN-11] a command in a container runs as the requested user, with its input, both outputs and its exit code", async () => {
  const result = await runCommand("cat; echo [$GREETING] [$CODER_CONTAINER] >&2; exit 7", {
    env: { ...BOX, GREETING: "hello" },
    input: "in and out",
  });
  expect(result).toEqual({ code: 7, out: "in and out", err: "[hello] []\n" });
  expect([...setup.docker.execs.values()].at(-1)).toMatchObject({
    container: "box",
    body: { User: "dev", Tty: false },
  });
  const largeInput = "0123456789".repeat(200_000);
  expect((await runCommand("cat", { env: BOX, input: largeInput })).out === largeInput).toBe(true);
});

test("[WN-11] a command on a terminal gets the client's size, type and signals", async () => {
  const pty = { rows: 33, cols: 101, term: "vt220" };
  const result = await runCommand("sleep 0.2; stty size; echo $TERM; exit 3", {
    env: { SLIPWAY_CONTAINER: "box" },
    pty,
  });
  expect(result).toMatchObject({ code: 3, out: expect.stringMatching(/33 101\r\nvt220/) });
  const signaled = await runCommand("trap 'echo signaled; exit 9' USR1; echo ready; while :; do sleep 0.05; done", {
    env: BOX,
    signal: "USR1",
  });
  expect(signaled).toMatchObject({ code: 9, out: "ready\nsignaled\n" });
});

test("[WN-11] a missing container is reported as an error", async () => {
  const result = await runCommand("true", { env: { CODER_CONTAINER: "nowhere" } });
  expect(result).toMatchObject({ code: 255, err: expect.stringContaining("No such container: nowhere") });
});
