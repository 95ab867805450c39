// Fuzzes every operation of the OpenAPI document as the owner of the site and as a member without roles; agents' routes as an agent. No
// response may be a 5xx, have an undocumented status or shape, be an error in another format than the common one, or take too long, and no forbidden body may be
// accepted (rules FZ-1, FZ-2, FZ-4). A few rounds run in CI (api-fuzz.test.ts), many in `bun run fuzz:api` and `bun run torture`.
import fc from "fast-check";
import { systemClock } from "#base/clock.ts";
import { Client } from "#src/client.ts";
import { type SeededAgent, seedAgent, seedUser } from "#test/support/seed.ts";
import { ADMIN, startTestServer, type TestServer } from "#test/support/server.ts";
import { findFault } from "./answers.ts";
import { fetchDocument, listOperations, type Operation } from "./operations.ts";
import { arbitraryRequests, type KnownIds } from "./requests.ts";

type Check = { name: string; run(options: CheckOptions): Promise<string> };
export type CheckOptions = {
  rounds: number;
  seed: number;
  log(line: string): void;
  /** The caller of the routes for users. Default: the owner of the site. */
  who?: "administrator" | "member";
};

/** This operation would end the fuzzer's own session. */
const SKIPPED = new Set(["POST /api/v2/users/logout"]);

type FuzzInputs = { known: KnownIds; seeded: SeededAgent };

/** Creates a member's objects: workspace and agent in the store, all others through the API. */
const seedObjects = async (server: TestServer, admin: Client): Promise<FuzzInputs> => {
  const seeded = await seedAgent(server);
  const owner = new Client(server.url, seeded.owner_token);
  const user = await seedUser(server, { organization_id: seeded.organization_id });
  const [template] = await admin.get<{ id: string; active_version_id: string }[]>("/api/v2/templates?q=name:local");
  const message = { content: [{ type: "text", text: "hello" }] };
  const chat = await owner.post<{ id: string }>("/api/v2/chats", {
    organization_id: seeded.organization_id,
    ...message,
  });
  const skill = { name: "reviews", description: "When code is read.", content: "Read it twice." };
  const created = await owner.post<{ id: string }>("/api/v2/users/me/skills", skill);
  const known = {
    user: [user.user_id, seeded.owner_id],
    organization: ["default", seeded.organization_id],
    workspace: [seeded.workspace_id],
    workspacebuild: [seeded.build_id],
    workspaceagent: [seeded.agent_id],
    workspacename: ["dev"],
    chat: [chat.id],
    skill: [created.id],
    ...(template ? { template: [template.id], templateversion: [template.active_version_id] } : {}),
  };
  return { known, seeded };
};

const pickToken = ({ callers }: Operation, seeded: SeededAgent, userToken: string | undefined): string | undefined => {
  if (callers.length === 0) return undefined;
  return callers[0] === "agent" ? seeded.agent_token : userToken;
};

/** Sends `rounds` requests for each operation. Returns a one-line summary. Throws an error with every operation that failed. */
export const fuzzOperations = async ({ rounds, seed, log, who = "administrator" }: CheckOptions): Promise<string> => {
  // The server is in this process, even if the binary is under test: workspaces and agents are written directly to the store.
  await using server = await startTestServer({ clock: systemClock });
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const faults: string[] = [];
  let requestCount = 0;
  const succeeded = new Set<string>();
  let inputs: FuzzInputs | undefined;
  for (const operation of listOperations(await fetchDocument(server.url))) {
    if (SKIPPED.has(operation.name)) continue;
    // A successful operation may have deleted or changed the objects, so they are recreated after it.
    inputs ??= await seedObjects(server, admin);
    const { seeded, known } = inputs;
    const userToken = who === "member" ? seeded.owner_token : admin.token;
    const client = admin.withToken(pickToken(operation, seeded, userToken));
    let fault: string | undefined;
    const property = fc.asyncProperty(arbitraryRequests(operation, known), async (sent) => {
      requestCount++;
      const requestFault = await findFault(client, operation, sent, succeeded);
      if (requestFault !== undefined) fault = requestFault;
      return requestFault === undefined;
    });
    const result = await fc.check(property, { seed, numRuns: rounds });
    if (operation.method !== "GET" && succeeded.has(operation.name)) inputs = undefined;
    if (!result.failed) continue;
    const example = JSON.stringify(result.counterexample)?.slice(0, 600);
    faults.push(`${operation.name} ${fault ?? String(result.errorInstance)}\n  with ${example}`);
    log(faults.at(-1) as string);
  }
  if ((await admin.fetch("GET", "/api/v2/users/me")).status !== 200)
    faults.push("the fuzzer's own session was revoked");
  if (faults.length > 0) throw new Error(`seed ${seed}: ${faults.length} operations fail:\n${faults.join("\n")}`);
  return `${requestCount} requests as ${who}, seed ${seed}, ${succeeded.size} operations succeeded: no 5xx, no undocumented status or shape, no forbidden body accepted`;
};

export const checks: readonly Check[] = [{ name: "API fuzz: values for every operation", run: fuzzOperations }];
