// The ID of a child under another parent returns 404 and changes nothing, even if the caller may see the child. Routes with two IDs, their
// bodies and the children come from the authorization matrix, so that new routes are covered.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { describeInProcess } from "#test/support/in-process.ts";
import { callAs, getRow, OPERATION_NAMES } from "./matrix-call.ts";
import { type MatrixWorld, openMatrixWorld, type TestObjects } from "./matrix-world.ts";
import { A, C, O, T, U, W } from "./paths.ts";

const NEEDS_FILES = "its children need files: tested in their own files";
const OWN_ONLY = "other users' children are covered by their own tests";
const SECOND_IS_NO_ID = "the second is not an ID";

/** Routes whose two IDs are not a parent and its child, or whose children are not in the test data. */
const NOT_COVERED: Readonly<Record<string, string>> = {
  "GET /init-script/{os}/{arch}": SECOND_IS_NO_ID,
  "GET /api/v2/init-script/{os}/{arch}": SECOND_IS_NO_ID,
  [`POST ${A}/containers/devcontainers/{devcontainer}/recreate`]: "the agent checks its own children",
  [`DELETE ${A}/containers/devcontainers/{devcontainer}`]: "the agent checks its own children",
  [`POST ${A}/apps/{app}/link`]: SECOND_IS_NO_ID,
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
  [`GET ${W}/external-agent/{agent}/credentials`]: SECOND_IS_NO_ID,
  [`POST ${O}/members/{user}`]: "makes anyone a member",
  [`PUT ${U}/status/{status}`]: SECOND_IS_NO_ID,
  [`PUT ${O}/chats/model-overrides/{context}`]: SECOND_IS_NO_ID,
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

const listParameters = (name: string): string[] =>
  [...name.matchAll(/\{(\w+)\}/g)].map(([, parameter = ""]) => parameter);
const CASES = OPERATION_NAMES.filter((name) => listParameters(name).length > 1 && !(name in NOT_COVERED));

describeInProcess("children under another parent", () => {
  let world: MatrixWorld;
  /** Returns the token of a caller that can see both parents. */
  const findToken = (name: string) => world.tokens[getRow(name).access === "owner_only" ? "ada" : "admin"];

  /** The children, and their parents. */
  let things: TestObjects;
  /** A second parent of each kind. */
  let otherParents: TestObjects;
  beforeAll(async () => {
    world = await openMatrixWorld();
    const { makers } = world;
    things = Object.assign({}, world.things, await makers.signin());
    const { template, templateversion } = await makers.template();
    otherParents = {
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

  test.each(CASES)("[HT-14] %s: returns 404 under another parent", async (name) => {
    const operation = world.operations.find((operation) => operation.name === name);
    const [parent = ""] = listParameters(name);
    const otherParent = otherParents[parent];
    if (!operation || otherParent === undefined)
      throw new Error(`add another "${parent}" to this test, or ${name} to NOT_COVERED`);
    const row = getRow(name);
    const { [parent]: _, ...path } = row.path ?? {};
    const mixed = Object.assign({}, things, { [parent]: otherParent });
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
        const operation = world.operations.find((operation) => operation.name === name);
        if (!operation) throw new Error(`unknown operation: ${name}`);
        const response = await callAs(world, operation, getRow(name), findToken(name), things);
        await response.body?.cancel();
        return [name, response.status] as const;
      }),
    );
    expect(statuses.length).toBeGreaterThan(10);
    expect(statuses.filter(([, status]) => status !== 200)).toEqual([]);
  });
});
