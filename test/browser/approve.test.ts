// Chat approvals in a real browser: the permission mode, what an approval shows, and an answer from a notification.
import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Chat } from "#schema/chats/chat.ts";
import type { ChatApprovals } from "#schema/chats/chat-approval.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { openChatServer, STORY_ENV } from "#test/crash/server-story.ts";
import { enablePreset } from "#test/support/acp/agent-gateway.ts";
import { TEST_AGENT } from "#test/support/acp/agent-world.ts";
import { AgentUpstream, FILE_CONTENT, FINAL_TEXT } from "#test/support/acp/upstream.ts";
import { putGatewaySettings } from "#test/support/models/gateway-world.ts";
import { addModel } from "#test/support/models/model-world.ts";
import { BROKEN_SCRIPT, TalkingModel } from "#test/support/models/talking-model.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { PushService } from "#test/support/push-service.ts";
import { makeRepository } from "#test/support/repository.ts";
import { ADMIN, tempDirectory } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { listPageErrors, listStrayRequests, runStory } from "./story.ts";

/** The agent on the laptop: Claude Code if it is cached, else the test agent. */
const CLAUDE = {
  label: "Claude Code",
  prompt: (home: string) => `Write ${home}/proof-phone.txt`,
  file: "proof-phone.txt",
  text: FILE_CONTENT,
  words: FINAL_TEXT,
};
const SCRIPTED = {
  label: "Test agent",
  prompt: () => "edit proof-phone.txt hello\nsay The greeting is written.",
  file: "proof-phone.txt",
  text: "hello\n",
  words: "The greeting is written.",
};
const agent = needs.agents.found ? CLAUDE : SCRIPTED;

testNeeding(
  [needs.chromium, needs.node, needs.openssl, needs.git],
  "[CB-13][CB-14][CB-15][PE-12][NO-13][WB-4][WB-6][WB-94][CA-2][CA-11] a person selects the permission mode and approves edits and commands on the page, from a notification and on a phone; a late answer changes nothing",
  async () => {
    using scratch = tempDirectory();
    using service = await PushService.start(scratch.path);
    const reach = { SLIPWAY_WEBPUSH_PRIVATE_NETWORKS: "127.0.0.0/8", NODE_EXTRA_CA_CERTS: service.certificate };
    await using upstream = new AgentUpstream();
    await using story = await openChatServer(
      async (_, stack) => {
        const model = stack.use(await TalkingModel.start());
        return `${model.server.url}/v1`;
      },
      { ...STORY_ENV, ...reach },
      async ({ admin }) => {
        if (agent === SCRIPTED) return void (await admin.put<unknown>("/api/v2/ai/agents/test", TEST_AGENT));
        await addModel({ owner: admin, upstream } as never, "anthropic", { is_default: false }, "Anthropic", "/v1");
        await putGatewaySettings(admin, { default_names: { anthropic: "test-model" } });
        const command = join(needs.agents.file, "node_modules/.bin/claude-agent-acp");
        await enablePreset(admin, "claude-code", { command, install_script: "" });
      },
    );
    const { admin, organization_id } = story.world;
    const work = join(story.home, "work");
    const repository = makeRepository(work, { empty: true });
    const sum = join(work, "sum.sh");
    repository.write("sum.sh", BROKEN_SCRIPT);
    repository.git("add", ".");
    repository.git("commit", "-q", "-m", "first");
    const message = join(scratch.path, "message");
    let chat: Chat | undefined;
    const actions = {
      asked: async () => {
        await Bun.write(sum, BROKEN_SCRIPT);
        const content = [{ type: "text", text: "Fix the sum, please" }];
        const fields = { organization_id, workspace_id: story.workspace_id, client_type: "ui" };
        chat = await admin.post<Chat>("/api/v2/chats", { ...fields, content });
        const edit = await until(() => service.delivered.find((message) => message.text.includes("Edit work/sum.sh")));
        expect(JSON.parse(edit.text)).toMatchObject({ approval: { can_allow: false } });
        const path = `/api/v2/chats/${chat.id}/permissions`;
        const { calls } = await admin.get<ChatApprovals>(path);
        const answers = calls.map(({ tool_call_id }) => ({ tool_call_id, decision: "allow" }));
        await admin.post(path, { answers });
        const { text } = await until(() => service.delivered.find((message) => message.text.includes("Run: echo")));
        await Bun.write(message, text);
      },
      allowed: async () => {
        await until(async () => (await admin.get<Chat>(`/api/v2/chats/${chat?.id}`)).status === "waiting");
      },
      restarted: () =>
        until(async () => {
          const { latest_build } = await admin.get<Workspace>(`/api/v2/workspaces/${story.workspace_id}`);
          return latest_build.build_number === 3 && latest_build.status === "running";
        }),
    };
    const args = [
      story.place.client.url.href,
      ADMIN.email,
      ADMIN.password,
      JSON.stringify(service.subscription),
      message,
      JSON.stringify({ label: agent.label, prompt: agent.prompt(story.home), words: agent.words }),
    ];
    const result = await runStory("approve.mjs", args, actions, needs.chromium);
    expect(result).toMatchObject({
      problems: [],
      stays: true,
      diff: expect.stringContaining("- echo $(($1 - $2))"),
      parts: ['echo "looking"', "sh sum.sh 2 3"],
      runsIn: "Runs in ~/work",
      notification: {
        body: 'Run: echo "looking"; sh sum.sh 2 3 (in work)',
        actions: [
          ["allow", "Allow"],
          ["deny", "Deny"],
        ],
      },
      late: "The chat is no longer waiting for this approval.",
      changes: expect.stringContaining("- echo $(($1 - $2))"),
    });
    expect(result.question).toBe(`Create ${agent.file}?`);
    expect(readFileSync(join(story.home, agent.file), "utf8")).toBe(agent.text);
    expect(listStrayRequests(result, story.place.client.url.origin)).toEqual([]);
    expect(listPageErrors(result)).toEqual([]);
  },
  scaleTimeout(180_000),
);
