// Important pages look unchanged: screenshots are compared with those of test/browser/reference, on a server with a stopped clock. `bun run
// pictures` updates the references; SLIPWAY_PICTURES names a folder for differing screenshots.
import { expect } from "bun:test";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { createChat } from "#test/support/chats.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { ScriptedModels } from "#test/support/models/scripted-models.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { awaitBuild, createBuild, createWorkspace, openWorld, seedTemplate } from "#test/support/workspaces.ts";
import { recordEngine, requireReferenceEngine } from "./reference-engine.ts";
import { runStory } from "./story.ts";

const isRenewed = Boolean(process.env.SLIPWAY_TEST_RENEW_PICTURES);
if (isRenewed) recordEngine();

const FOLDER = join(import.meta.dir, "reference");
/** A Monday morning. */
const NOW = Date.UTC(2030, 0, 7, 9, 30);
const MINUTE_MS = 60_000;
/** Maximum size of one picture, a sixteenth of the screenshot. */
const MAX_REFERENCE_BYTES = 44 * 1024;
const ANSWER = `The sum subtracted where it should add.

## What changed

- \`sum.sh\` adds its two numbers now
- its answer to **2 and 3** is right

| given | answer |
|---|---|
| 2 and 3 | 5 |
`;

testNeeding(
  [needs.chromium, needs.node, requireReferenceEngine()],
  "[WB-6][WB-8] fifty screenshots of important pages, light and dark, wide and narrow, match their references",
  async () => {
    const clock = new ManualClock(NOW - 20 * MINUTE_MS);
    const models = new ScriptedModels();
    await using world = await openWorld({ clock, models });
    const { admin } = world;
    const { template_id, organization_id } = await seedTemplate(world.server, undefined, {
      name: "harbour",
      display_name: "Harbour",
      description: "A workspace with a view of the sea.",
    });
    const ids: string[] = [];
    for (const name of ["lighthouse", "payments-api", "quay"]) {
      const { id } = await createWorkspace(admin, template_id, name);
      await awaitBuild(admin, id);
      ids.push(id);
      clock.advance(MINUTE_MS);
    }
    await createBuild(admin, ids[2] ?? "", "stop");
    await awaitBuild(admin, ids[2] ?? "");
    await admin.post("/api/v2/users", {
      username: "grace",
      name: "Grace Hopper",
      email: "grace@example.com",
      password: "nine grey herons at noon",
    });
    const chat = await createChat({ owner: admin, organization_id }, "Fix the sum");
    (await models.next()).say(ANSWER).finish();
    const pages = [
      ["sign-in", "/login", "Password"],
      ["home", "/", "Recent workspaces"],
      ["workspaces", "/workspaces?q=", "lighthouse"],
      ["workspace", `/workspaces/${ids[0]}`, "lighthouse"],
      ["builds", `/workspaces/${ids[2]}/builds`, "Stop"],
      ["new-workspace", `/new?template=${template_id}`, "Harbour"],
      ["new-chat", "/chats", "Fix the sum"],
      ["chat", `/chats/${chat.id}`, "What changed"],
      ["templates", "/templates", "Harbour"],
      ["template", `/templates/${template_id}`, "Harbour"],
      ["audit", "/audit", "grace"],
      ["people", "/admin/people", "Grace Hopper"],
      ["account", "/account/profile", "admin"],
    ];
    const args = [
      world.server.url.href,
      admin.token ?? "",
      JSON.stringify(pages),
      FOLDER,
      isRenewed ? "yes" : "no",
      String(clock.now()),
    ];
    const result = await runStory<{ problems: string[]; moved: string[] }>("reference.mjs", args);
    expect(result.problems).toEqual([]);
    expect(result.moved.length).toBe(4);
    const files = readdirSync(FOLDER);
    expect(files.length).toBe(4 * pages.length);
    expect(files.filter((name) => statSync(join(FOLDER, name)).size > MAX_REFERENCE_BYTES)).toEqual([]);
  },
  // A machine that is busy with other tests renders slowly.
  scaleTimeout(300_000),
);
