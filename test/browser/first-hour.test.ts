// The first hour of three people, each with an empty server, a browser and no documentation.
import { expect } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Workspaces } from "#schema/workspaces/workspace.ts";
import { startOllama } from "#test/api/administration/model-servers.ts";
import { ServerSlot } from "#test/crash/server.ts";
import { openGitWorld, removeWorkspace } from "#test/repositories/world.ts";
import { serveEditors } from "#test/support/editor-mirror.ts";
import { BROKEN_SCRIPT, TalkingModel } from "#test/support/models/talking-model.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { requireSingleServer } from "#test/support/one-server.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { findCompiledProgram } from "#test/support/program.ts";
import { serveReleases } from "#test/support/release-server.ts";
import { readSetupLink } from "./setup-link.ts";
import { listPageErrors, runStory } from "./story.ts";

const WITHOUT_ADMIN = {
  SLIPWAY_ADMIN_EMAIL: "",
  SLIPWAY_ADMIN_USERNAME: "",
  SLIPWAY_ADMIN_PASSWORD: "",
  SLIPWAY_CHAT_TITLES: "false",
};

/** Starts a model server that the server detects on its machine. */
const startDetectableModel = (talking: TalkingModel) => {
  const forwardRequest = async (request: Request): Promise<Response> =>
    fetch(`${talking.server.url}/v1/chat/completions`, {
      method: "POST",
      body: await request.text(),
      headers: { "content-type": "application/json" },
    });
  return startOllama({ "POST /v1/chat/completions": forwardRequest });
};

type Developer = {
  readonly presses: number;
  readonly seconds: number;
  readonly host: string;
  readonly diff: string;
  readonly folder?: string;
  readonly saved?: boolean;
  readonly cell?: string;
};

const playDeveloper = async (releases: string, isGenuine: boolean): Promise<{ result: Developer; home: string }> => {
  await using place = await ServerSlot.make({ isNew: true });
  await using talking = await TalkingModel.start();
  using ollama = startDetectableModel(talking);
  using git = openGitWorld();
  await git.publish("shop", { "README.md": "shop\n", "work/sum.sh": BROKEN_SCRIPT });
  const env = {
    ...WITHOUT_ADMIN,
    SLIPWAY_LOCAL_MODEL_SERVERS: `http://127.0.0.1:${ollama.port}`,
    SLIPWAY_ALLOWED_PRIVATE_NETWORKS: "127.0.0.0/8",
  };
  const setup = await readSetupLink(place.spawn({ env }).child.stdout);
  const args = [setup, git.link("shop"), releases, isGenuine ? "yes" : "no"];
  const result = await runStory<Developer>("first-hour.mjs", args);
  expect(result.problems).toEqual([]);
  if (!isGenuine) expect(listPageErrors(result)).toEqual([]);
  const workspaces = join(place.directory, "workspaces");
  const homes = readdirSync(workspaces).map((id) => join(workspaces, id, "home"));
  const home = homes.find((path) => readdirSync(path).includes("shop")) ?? "";
  expect(readFileSync(join(home, "shop/work/sum.sh"), "utf8")).not.toBe(BROKEN_SCRIPT);
  const copied = isGenuine ? readFileSync(join(home, "shop/copied"), "utf8") : "";
  return { result, home: copied };
};

const checkDeveloper = ({ presses, seconds, host, diff }: Developer): void => {
  expect(presses).toBeLessThanOrEqual(12);
  expect(seconds).toBeLessThan(180);
  expect(host).toMatch(/^code--.*\.localhost$/);
  expect(diff).toContain("- echo $(($1 - $2))");
};

testNeeding(
  [needs.chromium, needs.node, needs.git, requireSingleServer("needsLocalServerProcess")],
  "[WB-94] a solo developer opens an editor on a cloned repository and approves an edit as a diff, within 12 clicks and 3 minutes",
  async () => {
    using releases = await serveReleases({ codeServer: "4.139.1", go: "1.99.1", jupyterlab: "4.6.6" });
    const { result } = await playDeveloper(releases.url, false);
    checkDeveloper(result);
  },
  scaleTimeout(240_000),
);

testNeeding(
  [needs.editors, needs.chromium, needs.node, needs.git, needs.python3, requireSingleServer("needsLocalServerProcess")],
  "[WB-94][TG-5] the same works with the real code-server, which saves a file and runs a command, and the real JupyterLab, which runs a cell",
  async () => {
    using mirror = serveEditors(needs.editors.file);
    const { result, home } = await playDeveloper(mirror.url, true);
    checkDeveloper(result);
    expect(result.folder).toContain("shop");
    expect(result.cell).toBe("42");
    expect(home).toBe("shop\nsaved-hereran-42\n");
  },
  scaleTimeout(600_000),
);

/** Containers start the program that was compiled for this machine. */
const compiled = { found: findCompiledProgram() !== undefined, reason: "needs the compiled program", file: "" };

testNeeding(
  [
    needs.docker,
    compiled,
    needs.chromium,
    needs.node,
    requireSingleServer("engine"),
    requireSingleServer("needsLocalServerProcess"),
  ],
  "[WB-94] a team lead invites three people, who each have a running workspace, within 25 clicks",
  async () => {
    await using place = await ServerSlot.make({ isNew: true });
    const address = `0.0.0.0:${place.port}`;
    const env = { ...WITHOUT_ADMIN, SLIPWAY_ADDRESS: address, SLIPWAY_DOCKER_HOST: needs.docker.file };
    const setup = new URL(await readSetupLink(place.spawn({ env }).child.stdout));
    const admin = place.client;
    const result = await runStory<{ presses: number }>("first-hour-lead.mjs", [setup.href]);
    expect(result).toMatchObject({ problems: [], warnings: 0 });
    expect(result.presses).toBeLessThanOrEqual(25);
    expect(listPageErrors(result)).toEqual([]);
    const lead = await admin.signIn("lead@example.com", "four quiet harbours at night");
    const { workspaces } = await lead.get<Workspaces>("/api/v2/workspaces");
    const owners = workspaces.map(({ owner_name, latest_build }) => [owner_name, latest_build.status]);
    expect(owners.sort()).toEqual(["ada-lovelace", "grace-hopper", "jo"].map((name) => [name, "running"]));
    await Promise.all(workspaces.map(({ id }) => removeWorkspace(lead, id)));
  },
  scaleTimeout(240_000),
);
