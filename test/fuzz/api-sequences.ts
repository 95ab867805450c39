// Random lives of objects through the API: they are created, read, changed, deleted and requested again, by their owner and by another
// user, below their own parent and below another's, and compared with a model (RELIABILITY check 38: use after free, hierarchy, namespace,
// leakage, invalid IDs). The steps are reproducible by seed; a few run in CI, many in `bun run torture`.
import { Client } from "#src/client.ts";
import { newPerson } from "#test/api/users/people.ts";
import { randomFrom } from "#test/support/random.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";

type Check = { name: string; run(options: CheckOptions): Promise<string> };
type CheckOptions = { rounds: number; seed: number; log(line: string): void };

/** A kind of object: how it is created, its path, and its list. */
type Kind = {
  name: string;
  /** Returns the path where objects are listed and usually created, below one of two parents. */
  listPath(parent: number): string;
  body(label: string): unknown;
  /** A body that is rejected. */
  invalidBody: unknown;
  /** Returns an object's ID in a list row. */
  id(row: Record<string, unknown>): string;
  objectPath(parent: number, id: string): string;
  change?: { method: "PATCH" | "PUT"; body: unknown };
  /** Returns an object's label, given at creation, in a list row. */
  label(row: Record<string, unknown>): unknown;
};

/** Maximum live objects of a kind and parent: lists have at most a thousand rows. */
const MAX_LIVE = 400;

const toRecords = (list: unknown): Record<string, unknown>[] => list as Record<string, unknown>[];

const makeKinds = (parents: { organizations: string[]; users: string[] }): Kind[] => [
  {
    name: "organization",
    listPath: () => "/api/v2/organizations",
    body: (name) => ({ name }),
    invalidBody: { name: "not a name!" },
    id: ({ id }) => String(id),
    objectPath: (_, id) => `/api/v2/organizations/${id}`,
    change: { method: "PATCH", body: { description: "changed" } },
    label: ({ name }) => name,
  },
  {
    name: "token",
    listPath: (parent) => `/api/v2/users/${parents.users[parent]}/keys/tokens`,
    body: (token_name) => ({ token_name }),
    invalidBody: { token_name: "x".repeat(500) },
    id: ({ id }) => String(id),
    objectPath: (parent, id) => `/api/v2/users/${parents.users[parent]}/keys/${id}`,
    label: ({ token_name }) => token_name,
  },
  {
    name: "provisioner key",
    listPath: (parent) => `/api/v2/organizations/${parents.organizations[parent]}/provisionerkeys`,
    body: (name) => ({ name }),
    invalidBody: { name: "" },
    id: ({ name }) => String(name),
    objectPath: (parent, id) => `/api/v2/organizations/${parents.organizations[parent]}/provisionerkeys/${id}`,
    label: ({ name }) => name,
  },
  {
    name: "model provider",
    listPath: () => "/api/v2/chats/providers",
    body: (display_name) => ({
      provider: "openai-compat",
      base_url: "http://127.0.0.1:1/v1",
      api_key: "k",
      display_name,
    }),
    invalidBody: { provider: "openai-compat", display_name: 7 },
    id: ({ id }) => String(id),
    objectPath: (_, id) => `/api/v2/chats/providers/${id}`,
    change: { method: "PATCH", body: { enabled: false } },
    label: ({ display_name }) => display_name,
  },
];

const INVALID_IDS = [
  "",
  "%00",
  "..%2f..",
  "none",
  "6ba7b810-9dad-41d1-80b4",
  "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
  "𝒳",
];
const GONE = [404, 410];
const FORBIDDEN = [403, 404];
const REFUSED = [400, 403, 404, 405, 409, 410];

/** Plays `rounds` random steps. Returns a one-line summary; throws with the seed and every difference from the model. */
const playSequences = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  await using server = await startTestServer();
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const outsider = (await newPerson(admin, "stranger")).client;
  const otherOrganization = await admin.post<{ id: string }>("/api/v2/organizations", { name: "elsewhere" });
  const kinds = makeKinds({ organizations: ["default", otherOrganization.id], users: ["admin", "stranger"] });
  const random = randomFrom(seed);
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
  const problems: string[] = [];
  const counts: Record<string, number> = {};
  let created = 0;

  const expectStatus = async (
    client: Client,
    step: string,
    expected: number[],
    method: string,
    path: string,
    body?: unknown,
  ) => {
    const response = await client.fetch(method, path, body);
    const text = await response.text();
    counts[step] = (counts[step] ?? 0) + 1;
    if (!expected.includes(response.status))
      problems.push(`${step}: ${method} ${path} returned ${response.status} ${text.slice(0, 200)}`);
    if (response.status >= 400 && !text.includes('"message"'))
      problems.push(`${step}: ${method} ${path} has no message`);
  };

  for (const kind of kinds) {
    // The IDs of existing objects by label, and the IDs of deleted ones; one of each per parent.
    const liveIds = [new Map<string, string>(), new Map<string, string>()];
    const deletedIds = [new Set<string>(), new Set<string>()];
    const listRows = async (parent: number) => toRecords(await admin.get(kind.listPath(parent)));
    const labelsBefore = [new Set((await listRows(0)).map(kind.label)), new Set((await listRows(1)).map(kind.label))];
    const hasTwoParents = kind.listPath(0) !== kind.listPath(1);
    for (let step = 0; step < rounds; step++) {
      const parent = hasTwoParents ? Math.floor(random() * 2) : 0;
      const [existing, deleted] = [liveIds[parent] as Map<string, string>, deletedIds[parent] as Set<string>];
      const id = pick([...existing.values()]);
      const toPath = (objectId: string) => kind.objectPath(parent, objectId);
      const action = Math.floor(random() * 8);
      if ((action <= 1 && existing.size < MAX_LIVE) || id === undefined) {
        const label = `s${++created}`;
        await expectStatus(admin, "create", [200, 201], "POST", kind.listPath(parent), kind.body(label));
        const row = (await listRows(parent)).find((candidate) => kind.label(candidate) === label);
        if (row) existing.set(label, kind.id(row));
      } else if (action === 2) {
        await expectStatus(admin, "read", [200, 405], "GET", toPath(id));
        if (kind.change)
          await expectStatus(admin, "change", [200, 204], kind.change.method, toPath(id), kind.change.body);
      } else if (action <= 1 || action === 3) {
        await expectStatus(admin, "delete", [200, 204], "DELETE", toPath(id));
        for (const [label, known] of existing) if (known === id) existing.delete(label);
        deleted.add(id);
      } else if (action === 4) {
        const deletedId = pick([...deleted]);
        if (deletedId === undefined || [...existing.values()].includes(deletedId)) continue;
        await expectStatus(admin, "use after delete", [...GONE, 405], "GET", toPath(deletedId));
        await expectStatus(admin, "use after delete", GONE, "DELETE", toPath(deletedId));
        if (kind.change)
          await expectStatus(admin, "use after delete", GONE, kind.change.method, toPath(deletedId), kind.change.body);
      } else if (action === 5) {
        // The stranger's own tokens belong to the stranger.
        if (kind.name === "token" && parent === 1) continue;
        await expectStatus(outsider, "as a stranger", [...FORBIDDEN, 405], "GET", toPath(id));
        await expectStatus(outsider, "as a stranger", FORBIDDEN, "DELETE", toPath(id));
        if (hasTwoParents)
          await expectStatus(admin, "below another parent", GONE, "DELETE", kind.objectPath(1 - parent, id));
      } else if (action === 6) {
        await expectStatus(admin, "create invalid", REFUSED, "POST", kind.listPath(parent), kind.invalidBody);
        await expectStatus(outsider, "create invalid", FORBIDDEN, "POST", kind.listPath(0), kind.body(`s${++created}`));
      } else {
        const invalidId = pick(INVALID_IDS);
        await expectStatus(admin, "invalid ID", [...REFUSED, 200], "GET", toPath(invalidId));
        if (invalidId !== "") await expectStatus(admin, "invalid ID", REFUSED, "DELETE", toPath(invalidId));
      }
      if (step % 8 !== 7 && step !== rounds - 1) continue;
      for (const parentIndex of hasTwoParents ? [0, 1] : [0]) {
        const actual = (await listRows(parentIndex))
          .map(kind.label)
          .filter((label) => !labelsBefore[parentIndex]?.has(label))
          .map(String);
        const expected = [...(liveIds[parentIndex] as Map<string, string>).keys()];
        if (actual.sort().join() !== expected.sort().join())
          problems.push(`${kind.name}: ${actual} exist, expected ${expected}`);
      }
    }
    log(`${kind.name}: ${liveIds.map(({ size }) => size).join(" and ")} objects are left`);
  }
  if (problems.length > 0) throw new Error(`seed ${seed}: ${[...new Set(problems)].slice(0, 8).join("\n")}`);
  return `${kinds.length} kinds, ${rounds} steps each, seed ${seed}: ${Object.entries(counts)
    .map(([step, n]) => `${n} ${step}`)
    .join(", ")}; all as the model predicts`;
};

export const checks: readonly Check[] = [{ name: "API fuzz: lives of things", run: playSequences }];
