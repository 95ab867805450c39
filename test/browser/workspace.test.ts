// A real workspace in the app in a real browser, from creation to deletion.
import { expect } from "bun:test";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { runStory } from "./story.ts";

testNeeding(
  [needs.chromium, needs.node],
  "[WB-87] [WB-4] [WB-6] a person creates a workspace from a link, reads its log and terminal, changes its schedule and parameters, and deletes it",
  async () => {
    await using server = await startTestServer();
    const args = [server.url.href, ADMIN.email, ADMIN.password];
    const { requests, consoleErrors, ...result } = await runStory<{ nodes: number }>("workspace.mjs", args);
    expect(result).toMatchObject({
      problems: [],
      name: "first",
      green: "a-g",
      hits: "1 of 1",
      builds: ["Start", "Stop", "Start", "Stop", "Start"],
      hoursAfterDiscard: "4",
      startTime: "07:30",
      role: "use",
      typed: "echo changed",
      isDeleteDisabled: true,
      overflowPx: 0,
      looksDisabled: true,
    });
    expect(result.link).toContain("/new?template=local&param.startup_script=");
    expect(result.nodes).toBeLessThan(100);
    expect(requests.filter((url) => !/^(data|blob):/.test(url) && !url.startsWith(server.url.origin))).toEqual([]);
    // Software rendering warns that it is slow; the browser reports a stream that the page left before it opened.
    const expectedErrors = ["GPU stall", "closed before the connection is established"];
    const unexpectedErrors = consoleErrors.filter(
      (text) => !text.startsWith("Failed to load resource") && !expectedErrors.some((one) => text.includes(one)),
    );
    expect(unexpectedErrors).toEqual([]);
  },
  scaleTimeout(240_000),
);
