// The insights page in a real browser, on a server with a month of data.
import { expect } from "bun:test";
import { uuid } from "#base/ids.ts";
import { insertRecording } from "#db/chats/recordings.ts";
import { sealRecording } from "#domain/ai/recordings.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import { createRandom, seedBuild, seedSpend } from "#test/support/seed-work.ts";
import { ADMIN, type TestServer } from "#test/support/server.ts";
import { openInsights } from "../api/insights/world.ts";
import { runStory } from "./story.ts";

const DAY = 86_400_000;

/** Writes a recorded gateway call to the store. */
const seedRecordedCall = async (server: TestServer, user_id: string, created_at: number): Promise<void> => {
  const { store, encryption } = getContext(server);
  const prompt = JSON.stringify({ model: "test-model", messages: [{ role: "user", content: "Name the project" }] });
  const answer = JSON.stringify({ content: [{ type: "text", text: "Codename Marmalade" }] });
  const texts = { prompt, answer, prompt_bytes: prompt.length, answer_bytes: answer.length };
  const recording = await sealRecording(encryption, user_id, texts, created_at);
  await store.commit([insertRecording(recording)]);
  const used = { input_tokens: 80, output_tokens: 7, cache_read_tokens: 0, cache_creation_tokens: 0, cost_micros: 150 };
  const call = {
    kind: "gateway" as const,
    user_id,
    model: "test-model",
    chat_id: "",
    root_chat_id: "",
    model_config_id: "",
  };
  await seedSpend(store, [{ ...call, ...used, recording_id: recording.id, created_at, duration_ms: 900 }]);
};

testNeeding(
  [needs.chromium, needs.node],
  "[WB-4] [WB-6] [WB-24] insights show usage, builds, chats and latency by day, with pointer and keyboard, and export them as a file",
  async () => {
    const now = Date.now();
    await using world = await openInsights(now - 30 * DAY);
    const { server, clock, store, seeded } = world;
    const { usage } = getContext(server);
    const { workspace_id, agent_id, organization_id, owner_id } = seeded;
    const guest = await seedUser(server, { username: "grace", organization_id });
    const draw = createRandom(5);
    for (let day = 0; day <= 30; day++) {
      if (day % 7 < 5) {
        usage.note({ workspace_id, agent_id, app: "vscode" });
        usage.noteRoundTrip(workspace_id, 20 + draw(30));
        if (draw(3) > 0) usage.note({ workspace_id, agent_id, user_id: guest.user_id, app: "code" });
      }
      await usage.flush();
      if (day < 30) clock.leap(DAY);
    }
    for (let i = 0; i < 120; i++) {
      const at = now - draw(29 * DAY) - 60_000;
      const outcome = (["worked", "worked", "worked", "worked", "failed"] as const)[draw(5)] ?? "worked";
      const build = {
        workspace_id,
        organization_id,
        build_number: i + 100,
        at,
        duration_ms: 8_000 + draw(90_000),
        outcome,
      };
      await seedBuild(store, { ...build, transition: "start" });
    }
    const models = [uuid(), uuid()];
    await seedSpend(
      store,
      Array.from({ length: 200 }, (_, index) => {
        const chat = uuid();
        return {
          user_id: index % 4 === 0 ? guest.user_id : owner_id,
          chat_id: chat,
          root_chat_id: chat,
          kind: "chat_turn" as const,
          model_config_id: models[draw(2)] ?? "",
          input_tokens: draw(90_000),
          output_tokens: draw(9_000),
          cache_read_tokens: draw(400_000),
          cache_creation_tokens: draw(10_000),
          cost_micros: draw(400_000),
          created_at: now - draw(29 * DAY) - 60_000,
        };
      }),
    );
    await seedRecordedCall(server, guest.user_id, now - 60_000);
    const admin = await world.admin.signIn(ADMIN.email, ADMIN.password);
    const args = [server.url.href, admin.token ?? ""];
    const result = await runStory<{ csv: string; usage: string; choices: string[]; answer: string }>(
      "insights.mjs",
      args,
    );
    expect(result).toMatchObject({
      problems: [],
      file: true,
      builds: "120",
      days: 7,
      keepsPeriod: true,
      answer: "Codename Marmalade",
    });
    expect(result.moved).not.toBe(result.last);
    expect(result.csv.split("\r\n")[0]).toBe("date,builds,failed,canceled,p50_ms,p95_ms");
    expect(result.csv.trim().split("\r\n").length).toBe(31);
    expect(result.usage.split("\r\n")[0]).toStartWith("day,id,calls,calls_without_price,input_tokens,output_tokens");
    const calls = result.usage
      .trim()
      .split("\r\n")
      .slice(1)
      .map((line) => Number(line.split(",")[2]));
    expect(calls.reduce((sum, count) => sum + count, 0)).toBe(201);
    expect(result.choices).toEqual(["Template", "Workspace", "Model", "Provider", "Day", "Purpose"]);
  },
  scaleTimeout(180_000),
);
