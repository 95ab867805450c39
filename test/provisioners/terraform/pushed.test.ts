// States that people push, after a manual repair or by mistake. The server rejects a state that Terraform could not use, or that would lose
// resources, before it replaces a good one.
import { afterAll, beforeAll, expect } from "bun:test";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { importVersion } from "#test/support/templates.ts";
import { makeTerraformTemplate, openTerraformWorld, type TerraformWorld } from "#test/support/terraform.ts";
import { awaitBuild, createBuild, createWorkspace } from "#test/support/workspaces.ts";

const requirements = [needs.terraform];
let world: TerraformWorld;
let template_id: string;
beforeAll(async () => {
  if (!needs.terraform.found) return;
  world = await openTerraformWorld();
  const { template } = await makeTerraformTemplate(world.admin, { "main.tf": MAIN }, "pushed");
  template_id = template.id;
});
afterAll(() => world?.[Symbol.asyncDispose]());

const MAIN = `terraform {
  required_providers {
    coder = { source = "coder/coder" }
  }
}
resource "terraform_data" "first" {
  input = "first"
}
resource "terraform_data" "second" {
  input = "second"
}
`;

type State = { serial: number; lineage: string; resources: { name: string }[] };

const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** Creates a running workspace. Returns its state and functions to fetch and push it. */
const createRunningWorkspace = async (name: string) => {
  const { admin } = world;
  const { id } = await createWorkspace(admin, template_id, name);
  const { latest_build } = await awaitBuild(admin, id);
  expect(latest_build.status).toBe("running");
  const path = `/api/v2/workspacebuilds/${latest_build.id}/state`;
  const fetchState = async (): Promise<string> => (await admin.fetch("GET", path)).text();
  const state = await fetchState();
  /** Returns the response's status and the problem with the state. */
  const push = async (newState: string | object, query = ""): Promise<string> => {
    const body = { state: base64(typeof newState === "string" ? newState : JSON.stringify(newState)) };
    const response = await admin.fetch("PUT", `${path}${query}`, body);
    const refusal = response.ok
      ? {}
      : ((await response.json()) as { message?: string; validations?: { detail: string }[] });
    return `${response.status} ${refusal.validations?.[0]?.detail ?? refusal.message ?? ""}`.trim();
  };
  return { id, fetchState, state, good: JSON.parse(state) as State, push };
};

const deleteAndWait = async (client: Client, id: string): Promise<Workspace> => {
  const build = await createBuild(client, id, "delete");
  using socket = await client.socket(`/api/v2/workspacebuilds/${build.id}/logs?follow`);
  for await (const _ of socket);
  return client.get<Workspace>(`/api/v2/workspaces/${id}?include_deleted=true`);
};

testNeeding(
  requirements,
  "[TF-45] PUT and a build refuse an invalid Terraform state, and a delete still removes everything",
  async () => {
    const { admin } = world;
    const { id, fetchState, state, good, push } = await createRunningWorkspace("garbage");
    const newer = { ...good, serial: good.serial + 1 };
    const invalidStates: Record<string, string | object> = {
      words: "garbage",
      "a text": '""',
      "a list": "[]",
      nothing: "null",
      "an empty object": {},
      "six megabytes": "x".repeat(6 * 1024 * 1024),
      "a cut off one": state.slice(0, -20),
      "another version": { ...newer, version: 3 },
      "no version": { ...newer, version: undefined },
      "no lineage": { ...newer, lineage: undefined },
      "an empty lineage": { ...newer, lineage: "" },
      "no serial": { ...newer, serial: undefined },
      "half a serial": { ...newer, serial: 1.5 },
      "no resources": { ...newer, resources: undefined },
      "resources that are not a list": { ...newer, resources: {} },
      "a resource that is not an object": { ...newer, resources: [...good.resources, "first"] },
      "a resource without instances": {
        ...newer,
        resources: [{ mode: "managed", type: "a", name: "b", provider: "c" }],
      },
      "an encrypted one": {
        serial: 99,
        lineage: good.lineage,
        meta: {},
        encrypted_data: "AAAA",
        encryption_version: "v0",
      },
    };
    const results: Record<string, string> = {};
    for (const [name, invalid] of Object.entries(invalidStates)) results[name] = await push(invalid, "?force=true");
    expect(results).toEqual(
      Object.fromEntries(
        Object.keys(invalidStates).map((name) => [
          name,
          expect.stringMatching(/^400 must be an? (Terraform|unencrypted) state/),
        ]),
      ),
    );
    expect(await fetchState()).toBe(state);
    const path = `/api/v2/workspaces/${id}/builds`;
    for (const pushed of ["garbage", "[]", "{}"]) {
      const response = await admin.fetch("POST", path, { transition: "stop", state: base64(pushed) });
      expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('"field":"state"')]);
    }
    const deleted = await deleteAndWait(admin, id);
    expect([deleted.latest_build.status, deleted.latest_build.job.error]).toEqual(["deleted", undefined]);
  },
);

testNeeding(
  requirements,
  "[TF-45] a state with another lineage, an older state and an empty state require force; a newer state does not",
  async () => {
    const { admin } = world;
    const { id, fetchState, state, good, push } = await createRunningWorkspace("replaced");
    expect(await push({ ...good, lineage: "other", serial: 99 })).toMatch(/^409 .*another workspace's/);
    expect(await push({ ...good, serial: good.serial - 1 })).toMatch(/^409 .*it is older/);
    expect(await push({ ...good, resources: [] })).toMatch(/^409 .*must be higher/);
    expect(await push("")).toMatch(/^409 .*holds terraform_data\.first and 1 more/);
    const older = { transition: "stop", state: base64(JSON.stringify({ ...good, serial: 0 })) };
    expect((await admin.fetch("POST", `/api/v2/workspaces/${id}/builds`, older)).status).toBe(409);
    expect(await fetchState()).toBe(state);
    // A state that was pulled can be pushed again unchanged.
    expect(await push(state)).toBe("204");
    const reduced = {
      ...good,
      serial: good.serial + 1,
      resources: good.resources.filter(({ name }) => name !== "first"),
    };
    expect(await push(reduced)).toBe("204");
    expect(JSON.parse(await fetchState())).toEqual(reduced);
    expect(await push(state, "?force=true")).toBe("204");
    expect(await push("", "?force=true")).toBe("204");
    expect(await fetchState()).toBe("");
    // Without a stored state, any valid state is accepted.
    expect(await push(state)).toBe("204");
    await createBuild(admin, id, "start");
    expect((await awaitBuild(admin, id)).latest_build.status).toBe("running");
    expect((await deleteAndWait(admin, id)).latest_build.job.error).toBeUndefined();
  },
);

testNeeding(requirements, "[TF-49] a template that stores its state elsewhere cannot be imported", async () => {
  const importWithBackend = async (path: string): Promise<string> => {
    const main = `${MAIN}terraform {\n  backend "local" {${path}}\n}\n`;
    const { job } = await importVersion(world.admin, { "main.tf": main });
    return job.error ?? job.status;
  };
  expect(await importWithBackend(`\n    path = "${world.folder}/elsewhere.tfstate"\n  `)).toBe(
    'The template keeps its state elsewhere (backend "local"). Remove that block: this server stores the state of each workspace, encrypted.',
  );
  expect(await importWithBackend("")).toBe("succeeded");
});

testNeeding(
  requirements,
  "[TF-45] stores the newest accepted state of several that are pushed concurrently",
  async () => {
    const { id, fetchState, good, push } = await createRunningWorkspace("at-once");
    const newerStates = [1, 2, 3].map((increase) => ({ ...good, serial: good.serial + increase }));
    const results = await Promise.all(newerStates.map((newer) => push(newer)));
    expect(results.filter((result) => result === "204").length).toBeGreaterThan(0);
    for (const result of results) expect(result).toMatch(/^(204$|409 )/);
    const { serial } = JSON.parse(await fetchState()) as State;
    const accepted = newerStates.filter((_, i) => results[i] === "204");
    expect(serial).toBe(Math.max(...accepted.map((newer) => newer.serial)));
    expect((await deleteAndWait(world.admin, id)).latest_build.job.error).toBeUndefined();
  },
);
