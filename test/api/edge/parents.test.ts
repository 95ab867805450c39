// A child's ID under another parent: the child exists and the caller may see it, but not below that parent. Always 404, and the child is
// unchanged. Routes with two IDs, their bodies and the children come from the authorization matrix, so that a new route is covered.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { describeInside } from "#test/support/inside.ts";
import { callAs, getRow, NAMES } from "./matrix-call.ts";
import { type MatrixWorld, openMatrixWorld, type TestObjects } from "./matrix-world.ts";
import { A, C, O, T, U, W } from "./paths.ts";

const NEEDS_FILES = "its children need files: tested with them";
const OWN_ONLY = "a user's children are refused to everyone else, by their own tests";
const NO_ID = "the second is not an ID";

/** Routes whose two IDs are not a parent and its child, or whose children the world does not have. */
const OTHERWISE: Readonly<Record<string, string>> = {
  "GET /init-script/{os}/{arch}": NO_ID,
  "GET /api/v2/init-script/{os}/{arch}": NO_ID,
  [`POST ${A}/containers/devcontainers/{devcontainer}/recreate`]: "the agent itself knows its own",
  [`DELETE ${A}/containers/devcontainers/{devcontainer}`]: "the agent itself knows its own",
  [`POST ${A}/apps/{app}/link`]: NO_ID,
  [`POST ${W}/snapshots/{snapshot}/restore`]: NEEDS_FILES,
  [`DELETE ${W}/snapshots/{snapshot}`]: NEEDS_FILES,
  [`POST ${W}/home-backups/{backup}/fetch`]: NEEDS_FILES,
  [`DELETE ${W}/home-backups/{backup}`]: NEEDS_FILES,
  [`GET ${W}/forks/{fork}`]: NEEDS_FILES,
  [`GET ${C}/trials/{trial}`]: NEEDS_FILES,
  [`GET ${C}/trials/{trial}/ways/{way}/diff`]: NEEDS_FILES,
  [`POST ${C}/trials/{trial}/stop`]: NEEDS_FILES,
  [`POST ${C}/trials/{trial}/keep`]: NEEDS_FILES,
  [`POST ${C}/trials/{trial}/discard`]: NEEDS_FILES,
  [`GET ${C}/debug/runs/{run}`]: "nothing is recorded: tested in test/api/chats/debug.test.ts",
  [`GET ${T}/versions/{name}`]: "each template has versions of the same names",
  [`GET ${W}/external-agent/{agent}/credentials`]: NO_ID,
  [`POST ${O}/members/{user}`]: "makes anyone a member",
  [`PUT ${U}/status/{status}`]: NO_ID,
  [`PUT ${O}/chats/model-overrides/{context}`]: NO_ID,
  [`PATCH ${U}/passkeys/{passkey}`]: OWN_ONLY,
  [`DELETE ${U}/passkeys/{passkey}`]: OWN_ONLY,
  [`DELETE ${U}/oauth2-grants/{grant}`]: OWN_ONLY,
  [`GET ${U}/secrets/{secret}`]: OWN_ONLY,
  [`PATCH ${U}/secrets/{secret}`]: OWN_ONLY,
  [`DELETE ${U}/secrets/{secret}`]: OWN_ONLY,
  [`DELETE ${U}/deploy-keys/{deploy_key}`]: OWN_ONLY,
  [`GET ${U}/skills/{skill}`]: OWN_ONLY,
  [`PATCH ${U}/skills/{skill}`]: OWN_ONLY,
  [`DELETE ${U}/skills/{skill}`]: OWN_ONLY,
  [`GET ${O}/members/{user}/chats/model-overrides`]: OWN_ONLY,
  [`PUT ${O}/members/{user}/chats/model-overrides/{context}`]: OWN_ONLY,
  [`POST ${O}/members/{user}/workspaces`]: "the template decides the organization",
  [`GET ${O}/members/{user}/workspaces/available-users`]: "lists the organization's members, regardless of the user",
};

const listParameters = (name: string): string[] => [...name.matchAll(/\{(\w+)\}/g)].map(([, one = ""]) => one);
const CASES = NAMES.filter((name) => listParameters(name).length > 1 && !(name in OTHERWISE));

describeInside("children under another parent", () => {
  let world: MatrixWorld;
  /** A client that can see both parents. */
  const findToken = (name: string) => world.tokens[getRow(name).access === "owner_only" ? "ada" : "admin"];

  /** The children, below the first of each parent. */
  let things: TestObjects;
  /** A second parent of each kind. */
  let others: TestObjects;
  beforeAll(async () => {
    world = await openMatrixWorld();
    const { makers } = world;
    things = Object.assign({}, world.things, await makers.signin());
    const { template, templateversion } = await makers.template();
    others = {
      ...(await makers.organization()),
      ...(await makers.oauth2app()),
      ...(await makers.chat()),
      ...(await makers.workspace()),
      ...(await makers.group()),
      user: things.zoe as string,
      template: template as string,
      templateversion: templateversion as string,
    };
  });
  afterAll(async () => {
    await world[Symbol.asyncDispose]();
  });

  test.each(CASES)("[HT-14] %s: not found under another parent", async (name) => {
    const operation = world.operations.find((one) => one.name === name);
    const [parent = ""] = listParameters(name);
    const other = others[parent];
    if (!operation || other === undefined)
      throw new Error(`add another "${parent}" to this test, or ${name} to OTHERWISE`);
    const row = getRow(name);
    const { [parent]: _, ...path } = row.path ?? {};
    const mixed = Object.assign({}, things, { [parent]: other });
    const response = await callAs(world, operation, Object.assign({}, row, { path }), findToken(name), mixed);
    expect([await response.json(), response.status]).toEqual([
      { message: "Resource not found or you do not have access to this resource." },
      404,
    ]);
  });

  test("[HT-14] the children still exist under their parents", async () => {
    const reads = CASES.filter((name) => {
      const { answers, path } = getRow(name);
      return name.startsWith("GET ") && answers === undefined && path === undefined;
    });
    const statuses = await Promise.all(
      reads.map(async (name) => {
        const operation = world.operations.find((one) => one.name === name);
        if (!operation) throw new Error(`there is no ${name}`);
        const response = await callAs(world, operation, getRow(name), findToken(name), things);
        await response.body?.cancel();
        return [name, response.status] as const;
      }),
    );
    expect(statuses.length).toBeGreaterThan(10);
    expect(statuses.filter(([, status]) => status !== 200)).toEqual([]);
  });
});
