// Administration in a real browser, against a model server on a real socket.
import { expect } from "bun:test";
import { openModelWorld } from "#test/support/models/model-world.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { runStory } from "./story.ts";

testNeeding(
  [needs.chromium, needs.node],
  "[WB-4] [WB-6] [WB-21] [OA-1] [OA-3] an administrator sets up users, roles, applications, models and the AI gateway in the browser",
  async () => {
    await using world = await openModelWorld();
    const { server, owner, upstream } = world;
    const args = [server.url.href, owner.token ?? "", upstream.url];
    type AdministrationResult = { refused: string; secrets: { remaining: string[]; second: string } };
    const running = runStory<AdministrationResult>("administration.mjs", args);
    upstream.answersGreeting = false;
    void upstream.answerAll((call) => {
      if (call.path.endsWith("/models")) call.answer(200, { object: "list", data: [{ id: "qwen3-coder:30b" }] });
      else call.say({ text: "Hello there." }, { finish: "stop", usage: { input: 9, output: 3 } }).end();
    });
    const result = await running;
    expect(result).toMatchObject({ problems: [] });
    const gateway = await owner.get<{ enabled: boolean; names: { name: string }[] }>("/api/v2/ai/settings");
    expect(gateway).toMatchObject({ enabled: true, names: [{ name: "claude-*" }] });
    expect(result.refused).toContain("easy to guess");
    expect(result.secrets.remaining).toEqual([result.secrets.second]);
    const { users } = await owner.get<{ users: { username: string; roles: { name: string }[] }[] }>("/api/v2/users");
    expect(users.find(({ username }) => username === "grace")?.roles.map(({ name }) => name)).toEqual(["auditor"]);
  },
);
