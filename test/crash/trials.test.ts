// A server is killed during a trial with several ways, at each failpoint, one after the other: the next server continues, delivers each
// prompt once, runs each check once, keeps the chosen way, and leaves nothing behind.
import { expect } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TRIAL_FAILPOINTS } from "#base/failpoint.ts";
import type { Chat, MessagePage } from "#schema/chats/chat.ts";
import type { Trial, Trials } from "#schema/chats/trial.ts";
import type { Snapshots } from "#schema/workspaces/snapshot.ts";
import type { Workspaces } from "#schema/workspaces/workspace.ts";
import { addWritingModel, startWritingModel } from "#test/support/models/writing-model.ts";
import { testSingleServer } from "#test/support/one-server.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, createWorkspace } from "#test/support/workspaces.ts";
import { ServerSlot } from "./server.ts";
import { signInAdmin } from "./server-world.ts";

const test = testSingleServer("needsLocalServerProcess");

const TEMPLATE = "provisioner: local\nresources: [{name: main, agents: [{name: main}]}]\n";
const ENV = { SLIPWAY_CHAT_TITLES: "false" };
/** Failpoints before a way is kept, in order. */
const EARLY_FAILPOINTS = TRIAL_FAILPOINTS.slice(0, 4);
const KEEP_FAILPOINTS = TRIAL_FAILPOINTS.slice(4);

test(
  "[TY-8] killed at each failpoint, a server prompts and checks each way once, keeps one completely, and leaves nothing behind",
  async () => {
    await using models = await startWritingModel();
    await using place = await ServerSlot.make();
    let server = await place.start({ env: ENV });
    const { admin, organization_id } = await signInAdmin(place);
    await addWritingModel(admin, models);
    const { id } = await createWorkspace(admin, (await makeTemplate(admin, TEMPLATE)).id);
    await awaitBuild(admin, id);
    const home = (workspaceId: string): string => join(place.directory, "workspaces", workspaceId, "home");
    writeFileSync(join(home(id), "answer"), "none\n");
    const content = [{ type: "text", text: "hello" }];
    const chat = await admin.post<Chat>("/api/v2/chats", { organization_id, workspace_id: id, content });
    await until(async () => (await admin.get<Chat>(`/api/v2/chats/${chat.id}`)).status === "waiting");
    const path = `/api/v2/chats/${chat.id}/trials`;
    const getNewest = async (): Promise<Trial | undefined> => (await admin.get<Trials>(path)).trials[0];

    /** Kills the server at each of these failpoints, once per start. `request` leads to the first. */
    const killAt = async (points: readonly string[], request: () => Promise<unknown>): Promise<void> => {
      for (const [index, point] of points.entries()) {
        if (index === 0) {
          await place.stop();
          server = await place.start({ env: { ...ENV, SLIPWAY_FAILPOINT: point } });
          // The server may die before it responds.
          await request().catch(() => {});
        }
        expect({ point, signal: (await server.ended).signal }).toEqual({ point, signal: "SIGKILL" });
        const next = points[index + 1];
        // It may reach the next failpoint before it listens.
        if (next === undefined) server = await place.start({ env: ENV });
        else server = place.spawn({ env: { ...ENV, SLIPWAY_FAILPOINT: next } });
      }
    };

    const ways = ["one", "two"].map((word) => ({ prompt: `Write ${word}` }));
    await killAt(EARLY_FAILPOINTS, () =>
      admin.post(path, { ways, check_command: "echo run >> runs; grep -q two answer" }),
    );
    // A turn during which the server dies twice ends with an error, and its owner sends the message again.
    const resent = new Set<string>();
    const ready = await until(async () => {
      const trial = await getNewest();
      const stopped = (trial?.ways ?? []).filter(({ error }) => error.startsWith("The server stopped twice"));
      for (const { chat_id, prompt } of stopped) {
        if (resent.has(chat_id)) continue;
        resent.add(chat_id);
        const message = { content: [{ type: "text", text: prompt }] };
        await admin.post<unknown>(`/api/v2/chats/${chat_id}/messages`, message);
      }
      return trial?.status === "ready" && stopped.length === 0 && trial;
    });
    expect((await admin.get<Trials>(path)).trials).toHaveLength(1);
    expect(ready.ways.map(({ status, error = "" }) => `${status}${error}`)).toEqual(["failed", "passed"]);
    expect(ready.ways.map(({ changes }) => changes?.files)).toEqual([1, 1]);
    for (const { chat_id, workspace_id, prompt } of ready.ways) {
      const { messages } = await admin.get<MessagePage>(`/api/v2/chats/${chat_id}/messages`);
      const prompts = messages.filter(({ role }) => role === "user").map((message) => message.content[0]?.text);
      expect(prompts).toEqual([...(resent.has(chat_id) ? [prompt] : []), prompt, "hello"]);
      expect(readFileSync(join(home(workspace_id), "runs"), "utf8")).toBe("run\n");
    }

    await killAt(KEEP_FAILPOINTS, () => admin.post(`${path}/${ready.id}/keep`, { way: 2 }));
    const keptTrial = await until(async () => {
      const trial = await getNewest();
      return trial?.status === "kept" && trial;
    });
    expect(keptTrial.ways.map(({ deleted, error }) => `${deleted} ${error}`)).toEqual(["true ", "true "]);
    expect(readFileSync(join(home(id), "answer"), "utf8")).toBe("two\n");
    const { snapshots } = await admin.get<Snapshots>(`/api/v2/workspaces/${id}/snapshots`);
    expect(snapshots.map(({ name, status }) => `${name}: ${status}`)).toEqual(["Before keeping way 2: ready"]);
    expect((await admin.get<Workspaces>("/api/v2/workspaces")).workspaces.map((workspace) => workspace.id)).toEqual([
      id,
    ]);
    const [discardedChat, keptChat] = await Promise.all(
      keptTrial.ways.map(({ chat_id }) => admin.get<Chat>(`/api/v2/chats/${chat_id}`)),
    );
    expect([discardedChat?.archived, keptChat?.archived, keptChat?.workspace_id]).toEqual([true, false, id]);
    // One build has restored the files, and nothing incomplete is left.
    const builds = await admin.get<{ transition: string }[]>(`/api/v2/workspaces/${id}/builds`);
    expect(builds.map(({ transition }) => transition)).toEqual(["start", "stop", "start"]);
    for (const { workspace_id } of keptTrial.ways) {
      const folder = join(place.directory, "workspaces", workspace_id, "snapshots");
      expect(existsSync(folder) ? readdirSync(folder) : []).toEqual([]);
    }
    await place.stop();
  },
  scaleTimeout(180_000),
);
