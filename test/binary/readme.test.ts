// The marked shell blocks of the documentation, run with bash and curl as a new user would run them: in order, in one shell, with a real
// server and its daemons. Only machine-specific values are filled in: address, account and a free port.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { type Clock, systemClock } from "#base/clock.ts";
import { Client } from "#src/client.ts";
import { countMarks, findMarkedBlocks, listUserPages, readPage } from "#test/support/documents.ts";
import { type Need, needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";

/** The second page builds on the first one. */
const PAGES = ["docs/quickstart.md", "docs/api.md"];

/** The real time plus an offset, so that the test can skip waits of a minute. */
class SkippingClock implements Clock {
  #skippedMs = 0;
  now = (): number => systemClock.now() + this.#skippedMs;
  monotonic = systemClock.monotonic;
  after = systemClock.after;
  every = systemClock.every;
  skip(ms: number): void {
    this.#skippedMs += ms;
  }
}

const shell: Need = {
  found: Bun.which("bash") !== null && Bun.which("curl") !== null,
  reason: "needs bash and curl",
  file: "",
};

const findFreePort = (): number => {
  using probe = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  return probe.port;
};

test("[RP-8] each mark precedes a shell block on a tested page, and only marked blocks are tested", () => {
  const markedPages = listUserPages().filter((path) => countMarks(readPage(path), "tried") > 0);
  expect(markedPages.sort()).toEqual([...PAGES].sort());
  for (const path of PAGES)
    expect(findMarkedBlocks(readPage(path), "tried")).toHaveLength(countMarks(readPage(path), "tried"));
  const mark = "<!-- tried -->";
  const text = `${mark}\n\`\`\`sh\na\nb\n\`\`\`\n\`\`\`sh\nc\n\`\`\`\n${mark}\nd\n`;
  expect(findMarkedBlocks(text, "tried")).toEqual(["a\nb\n"]);
});

/** Skips the test in a run with the compiled binary, because its server needs a special clock and runs in this process. */
const testFromSource = Bun.env.SLIPWAY_TEST_BINARY === undefined ? testNeeding : () => {};

testFromSource(
  [shell, needs.node],
  "[RP-8] the documentation's commands create, watch, share, stop, change and delete a workspace as written",
  async () => {
    const clock = new SkippingClock();
    await using server = await startTestServer({ clock });
    const script = PAGES.flatMap((path) => findMarkedBlocks(readPage(path), "tried"))
      .join("\necho\n")
      .replaceAll("http://127.0.0.1:7080", server.url.origin)
      .replace("you@example.com", ADMIN.email)
      .replace('"password":"…"', `"password":"${ADMIN.password}"`)
      .replaceAll("3000", String(findFreePort()));
    const errors = join(server.directory, "errors");
    const child = Bun.spawn(["bash", "-euo", "pipefail", "-c", script], {
      env: { PATH: Bun.env.PATH, HOME: server.directory },
      // A watcher without a reader would keep a pipe open until its next event, so errors go into a file.
      stdio: ["ignore", "pipe", Bun.file(errors)],
    });
    let out = "";
    const decoder = new TextDecoder();
    let hasSkipped = false;
    try {
      for await (const chunk of child.stdout) {
        out += decoder.decode(chunk, { stream: true });
        // Now the script waits a minute.
        if (hasSkipped || !/^"deadline":/m.test(out)) continue;
        hasSkipped = true;
        clock.skip(60_000);
      }
      expect([await child.exited, await Bun.file(errors).text(), hasSkipped]).toEqual([0, "", true]);
    } finally {
      child.kill("SIGKILL");
      await stopAll(server.url);
    }
    // Lines about unfinished steps may be missing, and other tests check them.
    const steps = out
      .split("\n")
      .filter((line) => !/^(pending|starting|stopping|deleting|[[{].*|)$/.test(line))
      .map((line) => line.replace(/^"(\w+)":".*"$/, "$1"))
      .join(", ");
    expect(steps).toMatch(
      new RegExp(
        "^stop: 201, start: 201, delete: 201, running, hello, (running, )*stopped, (stopped, )?running, deadline, " +
          "(running, )*stopped, dormant_at, awake: 200, (stopped, )?(deleted, )?deleted: 410$",
      ),
    );
    expect(out).toContain('"reason":"autostop"');
    expect(out).toContain('[{"name":"startup_script","value":"echo changed"}]');
  },
  scaleTimeout(180_000),
);

/** Deletes the workspaces that the blocks have left running. */
const stopAll = async (url: URL): Promise<void> => {
  const admin = await new Client(url).signIn(ADMIN.email, ADMIN.password);
  const { workspaces } = await admin.get<{ workspaces: { id: string }[] }>("/api/v2/workspaces");
  for (const { id } of workspaces) {
    await admin.post(`/api/v2/workspaces/${id}/builds`, { transition: "delete" }).catch(() => {});
  }
};
