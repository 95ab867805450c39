// The first user of a server, in a real browser: their choices, their first steps, form errors, and a second user's notification.
import { expect } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "#src/client.ts";
import { FakeDocker } from "#test/support/docker/fake-docker.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { requireSingleServer } from "#test/support/one-server.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { startTestServer, tempDirectory } from "#test/support/server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { listPageErrors, runStory } from "./story.ts";

const WITHOUT_ADMIN = { SLIPWAY_ADMIN_EMAIL: "", SLIPWAY_ADMIN_USERNAME: "", SLIPWAY_ADMIN_PASSWORD: "" };
// The process itself prints the setup link, so the story runs with the server in-process.
const inProcess = { found: !process.env.SLIPWAY_TEST_BINARY, reason: "needs the server in this process", file: "" };
const PROGRAM = Buffer.concat([Buffer.from("\x7fELF"), Buffer.alloc(14), Buffer.from([62, 0])]);

testNeeding(
  [needs.chromium, needs.node, inProcess, requireSingleServer("local")],
  "[WB-98] the first user sees why Docker is unavailable, keeps the first steps, and gets errors at their fields; a second user is notified of a shared workspace",
  async () => {
    using directory = tempDirectory();
    await using engine = new FakeDocker(directory.path);
    const program = join(directory.path, "program");
    writeFileSync(program, PROGRAM);
    const env = { ...WITHOUT_ADMIN, SLIPWAY_DOCKER_HOST: engine.host, SLIPWAY_AGENT_BINARY: program };
    await using server = await startTestServer({ env });
    const createDockerTemplate = async (): Promise<void> => {
      const admin = await new Client(server.url).signIn("ada@example.com", "four quiet harbours at night");
      const resources = [{ name: "box", docker: { image: "debian:13" }, agents: [{ name: "main" }] }];
      await makeTemplate(admin, JSON.stringify({ provisioner: "docker", resources }), { name: "boxes" });
    };
    const actions = { containers: createDockerTemplate };
    const result = await runStory("newcomer.mjs", [(await server.context?.setupUrl()) ?? ""], actions);
    const problem = expect.stringMatching(/Containers cannot reach the server, .* Set address to 0\.0\.0\.0/);
    expect(result).toMatchObject({
      problems: [],
      docker: problem,
      canUseDocker: false,
      canUseLocal: true,
      reason: problem,
      canCreate: false,
      menu: ["HR", "Delete…"],
      steps: [
        expect.stringContaining("Create a workspaceDone"),
        expect.stringContaining("Start a chatNew chat"),
        expect.stringContaining("Invite peopleInvite people"),
      ],
      errors: [expect.stringMatching(/^[A-Z]/)],
      focus: "username",
      stepsLeft: 0,
    });
    const audit = (result.audit as string[]).join("\n");
    expect(audit).toContain("ada created their account with the setup link");
    expect(audit).toContain("ada created user bob");
    expect(listPageErrors(result)).toEqual([]);
  },
  scaleTimeout(240_000),
);
