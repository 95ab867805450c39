// Runs a shell or command of an SSH session inside a container of the workspace, with the exec calls of its engine (facts/tailnet-peer 7).
// Writes startup errors to the session's error stream. [WN-11]
import type ssh2 from "ssh2";
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { ContainerEngine } from "../containers/engine.ts";
import { attachExec, createExec, loadExitCode, readOutputs, startInBackground } from "../containers/exec.ts";
import {
  buildShellCommand,
  buildSignalCommand,
  createMark,
  startInContainer,
  toMarkVariable,
} from "../terminal/container.ts";
import type { TerminalSize } from "../terminal/program.ts";
import { DEFAULT_EXIT_CODE, sendExit } from "./exit.ts";
import { writeAll } from "./run-piped.ts";
import { showOnTerminal } from "./run-terminal.ts";
import type { Running, RunOptions } from "./running.ts";

/** The container of a session, by name or ID, and the user; an empty user is the container's default. */
export type ContainerPlace = { readonly container: string; readonly user: string };

export type ContainerRun = ContainerPlace &
  Pick<RunOptions, "channel" | "exited"> & {
    readonly clock: Clock;
    readonly engine: ContainerEngine;
    /** Empty for a login shell. */
    readonly command: string;
    /** Variables that the client has set. */
    readonly env: Readonly<Record<string, string>>;
  };

/** Runs the command on a terminal of this size and type. */
export const runOnContainerTerminal = (run: ContainerRun, size: TerminalSize, term: string): Running =>
  showOnTerminal(run, (events) => {
    const program = startInContainer({ ...run, size, env: { ...run.env, TERM: term } }, events);
    return Object.assign(program, {
      outcome: async () => ({ exitCode: await program.exitCode().catch(() => null), signalCode: null }),
    });
  });

/** Runs the command without a terminal, with separate output streams. Continues after the client disconnects. */
export const runInContainerPiped = (run: ContainerRun): Running => {
  const { channel, engine, container, user, command, env } = run;
  const mark = createMark();
  const program = { container, user, command: buildShellCommand(command), env: { ...env, ...toMarkVariable(mark) } };
  void runAndReport(run, async () => {
    const exec = await createExec(run, program, { attached: true });
    const stream = await attachExec(run, exec, false);
    forwardInput(channel, stream);
    for await (const { isError, bytes } of readOutputs(stream))
      await writeAll(isError ? channel.stderr : channel, bytes);
    return loadExitCode(engine, exec);
  });
  return {
    signal(name) {
      startInBackground(run, { container, user, command: buildSignalCommand(mark, name) }).catch((error: unknown) =>
        log("daemon").debug("could not send {name} to a program in a container: {error}", { name, error }),
      );
    },
  };
};

/** Runs the work to its end and reports the result to the client. */
const runAndReport = async ({ channel, exited }: ContainerRun, work: () => Promise<number | null>): Promise<void> => {
  let exitCode: number | null = DEFAULT_EXIT_CODE;
  try {
    exitCode = await work();
  } catch (error) {
    if (!channel.destroyed) channel.stderr.write(`slipway: ${(error as Error).message}\n`);
  }
  sendExit(channel, { exitCode, signalCode: null }, exited);
};

type Input = { write(bytes: Uint8Array): Promise<void>; end(): Promise<void> };

/** Forwards the client's input until its end. Does not iterate over the channel, which would destroy it at the end of input. */
const forwardInput = (channel: ssh2.ServerChannel, stream: Input): void => {
  channel.on("data", (chunk: Buffer) => {
    channel.pause();
    // A program that has ended accepts no input.
    stream.write(new Uint8Array(chunk)).then(
      () => channel.resume(),
      () => channel.resume(),
    );
  });
  const endInput = (): void => void stream.end().catch(() => {});
  channel.on("end", endInput);
  channel.on("close", endInput);
};
