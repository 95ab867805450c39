// `slipway logs` with a real server.
import { expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { run } from "#src/cli/client/logs.ts";
import { EXIT, type VerbInput } from "#src/cli/verb.ts";
import type { Client } from "#src/client.ts";
import { awaitBuild, createWorkspace, ECHO, openWorld, seedTemplate } from "#test/support/workspaces.ts";

/** Starts `slipway logs`. `printed` resolves with the first line. */
const startLogs = (argv: string[], client: Pick<Client, "url" | "token">) => {
  const stopping = new AbortController();
  const printed = Promise.withResolvers<string>();
  const errors: string[] = [];
  const input: VerbInput = {
    argv,
    env: { SLIPWAY_URL: client.url.href, SLIPWAY_TOKEN: client.token },
    readFile: () => "",
    signal: stopping.signal,
    clock: systemClock,
    isTerminal: false,
    print: printed.resolve,
    printError: (text) => errors.push(text),
  };
  return { ended: run(input), printed: printed.promise, errors, stopping };
};

test("[CF-11] prints the build's output; with --follow, continues with the agents' output until Ctrl-C", async () => {
  await using world = await openWorld();
  const { template_id } = await seedTemplate(world.server, { ...ECHO, echo: { logs: ["built"] } });
  const { id } = await createWorkspace(world.admin, template_id);
  await awaitBuild(world.admin, id);
  const printing = startLogs(["dev"], world.admin);
  expect([await printing.printed, await printing.ended]).toEqual(["built", EXIT.ok]);
  const following = startLogs(["dev", "--follow"], world.admin);
  expect(await following.printed).toBe("built");
  following.stopping.abort();
  expect(await following.ended).toBe(EXIT.interrupted);
});

test("[CF-11] Ctrl-C ends the command during the build", async () => {
  await using world = await openWorld();
  const { template_id } = await seedTemplate(world.server, { ...ECHO, echo: { logs: ["building"], hang: true } });
  await createWorkspace(world.admin, template_id);
  const following = startLogs(["dev", "--follow"], world.admin);
  expect(await following.printed).toBe("building");
  following.stopping.abort();
  expect(await following.ended).toBe(EXIT.interrupted);
});

test("[CF-11] the error names an unreachable server or a missing workspace", async () => {
  await using world = await openWorld();
  const missing = startLogs(["nothing"], world.admin);
  expect(await missing.ended).toBe(EXIT.failed);
  expect(missing.errors.join("")).toContain("there is no workspace nothing");
  const unreachable = startLogs(["dev"], { url: new URL("http://127.0.0.1:1"), token: "x" });
  expect(await unreachable.ended).toBe(EXIT.failed);
  expect(unreachable.errors.join("")).toMatch(/^slipway logs: http:\/\/127\.0\.0\.1:1 does not answer \(.*\)\n$/);
});
