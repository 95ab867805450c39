// The output and shutdown of `serve`, with a fake server whose shutdown the test controls.
import { expect, test } from "bun:test";
import { type Clock, systemClock } from "#base/clock.ts";
import { loadConfig } from "#base/config.ts";
import { VERSION } from "#base/version.ts";
import { explainReason } from "#src/cli/reason.ts";
import { serve } from "#src/cli/server/serve.ts";
import type { VerbInput } from "#src/cli/verb.ts";

/** A clock whose timers fire on request. */
const makeManualClock = (): Clock & { fire(): void } => {
  const timers: (() => void)[] = [];
  return {
    ...systemClock,
    after: (_ms, run) => {
      timers.push(run);
      return { cancel: () => {} };
    },
    fire() {
      for (const run of timers) run();
    },
  };
};

const startServe = (stop: (reason: string) => Promise<void>, setup?: string) => {
  const printed: string[] = [];
  const steps: string[] = [];
  const stopping = new AbortController();
  const clock = makeManualClock();
  const input: VerbInput = {
    argv: [],
    env: {},
    readFile: () => "",
    signal: stopping.signal,
    clock,
    isTerminal: false,
    print: (text) => printed.push(text),
    printError: () => {},
  };
  const loaded = loadConfig({ ...input, argv: ["--data-dir=/srv/slipway"] });
  let fatal: (error: Error) => void = () => {};
  const ended = serve(input, loaded, {
    openContext: async (options) => {
      fatal = options.fatal;
      return {
        setupUrl: async () => setup && new URL(setup, "http://127.0.0.1:4711/").href,
        async [Symbol.asyncDispose]() {
          steps.push("disposed");
        },
      };
    },
    startServer: async () => ({
      url: new URL("http://127.0.0.1:4711/"),
      stop: async (reason) => {
        await stop(reason);
        steps.push("stopped");
      },
    }),
  });
  return { ended, printed, steps, stopping, clock, fatal: (error: Error) => fatal(error) };
};

test("[CF-8] prints the actual address, the setup link, the documentation and the data directory", async () => {
  const { ended, printed, stopping } = startServe(async () => {}, "/setup?token=abc");
  stopping.abort();
  await ended;
  expect(printed[0]).toBe(`Slipway ${VERSION} is listening on http://127.0.0.1:4711`);
  expect(printed[1]).toEndWith(" http://127.0.0.1:4711/setup?token=abc");
  expect(printed[2]).toBe("API documentation: http://127.0.0.1:4711/swagger");
  expect(printed[3]).toBe("Data directory: /srv/slipway");
  expect(printed[4]).toStartWith(
    "Local workspaces are available to owners of the deployment, who can do everything there",
  );
});

test("[CF-8] stops the server, then the context, and exits 0", async () => {
  const { ended, steps, stopping, printed } = startServe(async () => {});
  stopping.abort();
  expect(await ended).toBe(0);
  expect(steps).toEqual(["stopped", "disposed"]);
  expect(printed.join("\n")).not.toContain("/setup");
});

test("[CF-8] exits 1 when the server does not stop within shutdown_timeout", async () => {
  const stopCalled = Promise.withResolvers<void>();
  const { ended, steps, stopping, clock } = startServe(() => {
    stopCalled.resolve();
    return new Promise(() => {});
  });
  stopping.abort();
  await stopCalled.promise;
  clock.fire();
  expect(await ended).toBe(1);
  expect(steps).toEqual([]);
});

test("[CF-8] exits 1 immediately when a component cannot continue", async () => {
  const { ended, steps, fatal } = startServe(async () => {});
  // Opening the context takes one microtask.
  await Promise.resolve();
  fatal(new Error("the disk does not accept writes"));
  expect(await ended).toBe(1);
  expect(steps).toEqual([]);
});

test("[CF-12] explains a failed start caused by the disk or the database file; a bug keeps its stack trace", () => {
  const { config } = loadConfig({ argv: ["--data-dir=/srv/slipway"], env: {}, readFile: () => "" });
  const diskFull = Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" });
  const expected = "the database cannot be used: database or disk is full (data directory /srv/slipway)";
  expect(explainReason(diskFull, config)).toBe(expected);
  expect(explainReason(new Error("the write could not be confirmed", { cause: diskFull }), config)).toBe(expected);
  expect(explainReason(new Error("x is not a function"), config)).toBeUndefined();
  expect(explainReason(Object.assign(new Error("no such column"), { code: "SQLITE_ERROR" }), config)).toBeUndefined();
});
