// A chat in a real browser: a real server, a real local workspace with a repository, a model that follows the prompts.
import { expect } from "bun:test";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ChatMessage, MessagePage } from "#schema/chats/chat.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { openChatServer } from "#test/crash/server-story.ts";
import { BROKEN_SCRIPT, TalkingModel } from "#test/support/models/talking-model.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { ADMIN } from "#test/support/server.ts";
import { runStory } from "./story.ts";

/** The state of pages after a disconnect (line.mjs). */
type PagesAfterDisconnect = {
  readonly counted: string;
  readonly ticked: readonly number[];
  readonly ticks: number;
  readonly lines: readonly [before: readonly string[], after: readonly string[]];
  readonly entries: readonly number[];
  readonly rows: readonly string[];
  readonly placeholders: readonly number[];
};

testNeeding(
  [needs.chromium, needs.node, needs.git],
  "[WB-64][CB-1][CB-2][CB-3][CB-4][CB-5][CB-7][WB-4][WB-6] a chat edits a file, asks on two pages, survives a broken connection, reorders queued messages, is interrupted, and is undone with its files",
  async () => {
    await using story = await openChatServer(async (_, stack) => {
      const model = stack.use(await TalkingModel.start());
      return `${model.server.url}/v1`;
    });
    const { admin } = story.world;
    const work = join(story.home, "work");
    mkdirSync(work);
    await Bun.write(join(work, "sum.sh"), BROKEN_SCRIPT);
    const git = "git -c user.name=Slip -c user.email=slip@example.com";
    const created = Bun.spawnSync(["sh", "-ec", `git init -q -b main; git add .; ${git} commit -qm one`], {
      cwd: work,
    });
    expect(created.exitCode).toBe(0);
    const rules = [{ tool: "execute", action: "ask" }];
    await admin.put<unknown>("/api/v2/chats/config/user-permissions", { permissions: { default: "allow", rules } });

    const typedFile = join(story.place.scratch, "typed");
    const { workspace_id } = story;
    const { latest_build } = await admin.get<Workspace>(`/api/v2/workspaces/${workspace_id}`);
    const agent = latest_build.resources[0]?.agents[0]?.id ?? "";
    const place = [workspace_id, agent, process.env.SLIPWAY_TEST_CUT_SECONDS ?? "3"];
    const args = [`${story.place.client.url}`, ADMIN.email, ADMIN.password, typedFile, ...place];
    const { requests, consoleErrors, ...result } = await runStory<{ away: PagesAfterDisconnect }>("chat.mjs", args);
    const numbers = Array.from({ length: 120 }, (_, index) => index + 1).join(" ");
    expect(result).toMatchObject({
      problems: [],
      draft: "Fix the sum",
      same: true,
      links: 0,
      staysVisible: true,
      offlineLayout: [1, 0],
      counted: expect.stringContaining(numbers),
      takenBack: "First of two\n\nTyped during the request",
      partial: true,
      userMessages: ["Remember the sum"],
      answered: "Other: Red",
      downloaded: "brought along",
      isTitleCut: false,
    });
    // Disconnected for a time: nothing is missing, duplicated or empty in the meantime.
    const { away } = result;
    expect(away.counted).toBe(Array.from({ length: 500 }, (_, index) => index + 1).join(" "));
    expect(away.ticked).toEqual(Array.from({ length: away.ticks }, (_, index) => index + 1));
    expect(away.lines[1]).toEqual(away.lines[0]);
    expect(away.entries).toEqual([1, 1]);
    expect(away.rows).toEqual(["story"]);
    expect(away.placeholders).toEqual([0, 0, 0, 0, 0]);
    // Text that looks like HTML is shown as text.
    expect(result.prose).toContain('<img src=x onerror="document.title=');
    expect(result.reference).toContain("sum.sh:1");
    expect(readFileSync(join(work, "sum.sh"), "utf8")).toBe(BROKEN_SCRIPT);
    expect(existsSync(typedFile)).toBe(true);
    const { messages } = await admin.get<MessagePage>(`/api/v2${result.chat}/messages`);
    expect(messages.map(({ role }: ChatMessage) => role).toReversed()).toEqual(["user", "assistant"]);
    const origins = new Set(requests.filter((url) => !url.startsWith("data:")).map((url) => new URL(url).origin));
    expect([...origins]).toEqual([result.line as string]);
    const expectedErrors = /^Failed to load resource|^WebSocket connection to/;
    expect(consoleErrors.filter((text) => !expectedErrors.test(text))).toEqual([]);
  },
  scaleTimeout(480_000),
);
