// The whole product in one story, in a real browser, with the program from source, or the compiled one if SLIPWAY_TEST_BINARY is set.
import { expect } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { startOllama } from "#test/api/administration/model-servers.ts";
import { ServerSlot } from "#test/crash/server.ts";
import { BROKEN_SCRIPT, TalkingModel } from "#test/support/models/talking-model.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { readSetupLink } from "./setup-link.ts";
import { listPageErrors, listStrayRequests, runStory } from "./story.ts";

/** How long the network is down; a minute in the long form, on request. */
const CUT_SECONDS = process.env.SLIPWAY_TEST_CUT_SECONDS ?? "3";
const [EMAIL, PASSWORD] = ["ada@example.com", "four quiet harbours at night"];

testNeeding(
  [needs.chromium, needs.node, needs.git],
  "[WB-62][CB-1][CB-2][CB-5][TE-1] a new user goes from the setup link to a chat in a running workspace, uses every main feature, and then continues on a phone",
  async () => {
    await using place = await ServerSlot.make({ isNew: true });
    await using talking = await TalkingModel.start();
    const forwardRequest = async (request: Request): Promise<Response> =>
      fetch(`${talking.server.url}/v1/chat/completions`, {
        method: "POST",
        body: await request.text(),
        headers: { "content-type": "application/json" },
      });
    using ollama = startOllama({ "POST /v1/chat/completions": forwardRequest });
    const models = `http://127.0.0.1:${ollama.port}`;
    const env = {
      SLIPWAY_ADMIN_EMAIL: "",
      SLIPWAY_ADMIN_USERNAME: "",
      SLIPWAY_ADMIN_PASSWORD: "",
      SLIPWAY_CHAT_TITLES: "false",
      SLIPWAY_LOCAL_MODEL_SERVERS: models,
      SLIPWAY_ALLOWED_PRIVATE_NETWORKS: "127.0.0.0/8",
    };
    const setup = await readSetupLink(place.spawn({ env }).child.stdout);
    const result = await runStory("whole.mjs", [setup, models, needs.node.file, CUT_SECONDS], {
      restart: async () => {
        place.currentProcess.kill("SIGKILL");
        await place.currentProcess.ended;
        await place.start({ env });
      },
    });
    expect(result).toMatchObject({
      problems: [],
      same: true,
      staysVisible: true,
      counted: true,
      isSecondComplete: true,
      sent: ["Remember the sum"],
      // The first user and version come from the setup.
      audit: { user: 2, model: 2, provider: 2, workspace: 1, share: 1, version: 2, chat: 2 },
    });
    // The duration depends on the machine; `result.firstSteps` has the seconds.
    expect((result.firstSteps as { presses: number }).presses).toBeLessThanOrEqual(6);
    const audit = result.audit as Record<string, number>;
    expect(audit.template).toBeGreaterThan(0);
    expect(audit.permissions).toBeGreaterThan(0);
    // The files are as they were before the chat.
    const [workspace = ""] = readdirSync(join(place.directory, "workspaces"));
    expect(readFileSync(join(place.directory, "workspaces", workspace, "home/work/sum.sh"), "utf8")).toBe(
      BROKEN_SCRIPT,
    );
    expect(listStrayRequests(result, place.client.url.origin)).toEqual([]);
    expect(listPageErrors(result)).toEqual([]);

    const phone = await runStory("whole-phone.mjs", [place.client.url.href, EMAIL, PASSWORD, String(result.chat)]);
    expect(phone.problems).toEqual([]);
    expect(listStrayRequests(phone, place.client.url.origin)).toEqual([]);
  },
  scaleTimeout(600_000),
);
