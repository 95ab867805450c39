// A month of use by 500 people in three time zones, generated from a seed and recorded through the collector. Partly aggregated
// into larger units, so that reports read raw and aggregated rows.
import { UsageCollector } from "#actors/usage/collector.ts";
import { foldUsage } from "#actors/usage/folding.ts";
import { uuid } from "#base/ids.ts";
import { insertAgentApp } from "#db/agents/apps.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
import { BUCKET_MS } from "#db/reports/usage/block.ts";
import { insertTemplate } from "#db/templates/templates.ts";
import { insertOrganization } from "#db/users/organizations.ts";
import { insertUser } from "#db/users/users.ts";
import { insertWorkspace } from "#db/workspaces/workspaces.ts";
import { randomFrom } from "#test/support/random.ts";

export const MINUTE = 60_000;
export const DAY = 86_400_000;
/** 09:30 UTC. Daylight saving in Berlin and New York ends in the month before. */
export const NOW = Date.UTC(2030, 10, 10, 9, 30);
export const DAYS = 40;

export type Person = { readonly id: string; readonly username: string; readonly utc_offset_hours: number };
/** One minute of work with one app; undefined is use without a named app. */
export type Minute = { user: string; template: string; app: string | undefined; minute: number };
export type Sample = { user: string; template: string; at: number; ms: number };

export type Month = {
  readonly people: readonly Person[];
  readonly templates: readonly string[];
  readonly minutes: readonly Minute[];
  readonly samples: readonly Sample[];
};

/** The UTC offsets of people's homes in hours, outside of daylight saving. */
const ZONES = [5.5, 1, -5];
const APPS = ["vscode", "ssh", "reconnecting-pty", "jetbrains", "code", undefined] as const;

type SeededAgent = { workspace_id: string; agent_id: string; owner: Person; template: string };

const createPeople = (count: number): Person[] =>
  Array.from({ length: count }, (_, i) => ({
    id: uuid(),
    username: `p-${i}`,
    utc_offset_hours: ZONES[i % 3] as number,
  }));

export const makeMonth = async (store: Store, seed: number, count = 500): Promise<Month> => {
  const random = randomFrom(seed);
  const drawBelow = (n: number): number => Math.floor(random() * n);
  const people = createPeople(count);
  const templates = [uuid(), uuid(), uuid()].sort();
  const organization_id = uuid();
  const times = { created_at: NOW - 90 * DAY, updated_at: NOW - 90 * DAY };
  const writes: Statement[] = [
    insertOrganization({ id: organization_id, name: "org", display_name: "Org", ...times }),
    ...people.map(({ id, username }) =>
      insertUser({ id, username, email: `${username}@example.com`, status: "active", login_type: "none", ...times }),
    ),
    ...templates.map((id, i) =>
      insertTemplate({
        id,
        organization_id,
        name: `t-${i}`,
        provisioner: "echo",
        active_version_id: uuid(),
        ...times,
        created_by: people[0]?.id as string,
      }),
    ),
  ];
  const agents: SeededAgent[] = people.flatMap((owner) =>
    templates
      .filter((_, i) => i === 0 || random() < 0.4)
      .map((template) => ({ workspace_id: uuid(), agent_id: uuid(), owner, template })),
  );
  for (const [i, { workspace_id, agent_id, owner, template }] of agents.entries()) {
    writes.push(
      insertWorkspace({
        id: workspace_id,
        owner_id: owner.id,
        organization_id,
        template_id: template,
        name: `w-${i}`,
        latest_build_id: uuid(),
        last_used_at: NOW,
        ...times,
      }),
      insertAgentApp({ id: uuid(), agent_id, slug: "code", display_name: "Code", icon: "/icon/code.svg" }),
    );
  }
  for (let i = 0; i < writes.length; i += 400) await store.commit(writes.slice(i, i + 400));
  const collector = new UsageCollector(store, () => {});
  const minutes: Minute[] = [];
  const samples: Sample[] = [];
  const recordWork = ({ workspace_id, agent_id, owner, template }: SeededAgent, from: number, length: number): void => {
    const app = APPS[drawBelow(APPS.length)];
    for (let minute = from; minute < from + length && minute * MINUTE < NOW; minute++) {
      if (random() < 0.1) continue;
      // Sometimes another person uses the workspace; this counts for that person.
      const user_id = random() < 0.01 ? (people[drawBelow(count)] as Person).id : owner.id;
      collector.note({ workspace_id, agent_id, user_id, app, at: minute * MINUTE + drawBelow(MINUTE) });
      minutes.push({ user: user_id, template, app, minute });
      if (user_id === owner.id && minute % 5 === 0 && random() < 0.5) {
        const ms = 1 + drawBelow(200);
        collector.noteLatency(workspace_id, ms, minute * MINUTE);
        samples.push({ user: owner.id, template, at: minute * MINUTE, ms });
      }
    }
  };
  for (const owner of people) {
    const ownAgents = agents.filter((agent) => agent.owner === owner);
    for (let sessions = drawBelow(7); sessions > 0; sessions--) {
      const day = Math.floor((NOW - drawBelow(DAYS) * DAY) / DAY);
      const from = Math.floor((day * DAY - owner.utc_offset_hours * 3_600_000) / MINUTE) + drawBelow(24 * 60);
      const length = 1 + drawBelow(random() < 0.2 ? 300 : 90);
      // Some people work in several workspaces at the same time, or with two apps.
      const first = ownAgents[drawBelow(ownAgents.length)] as SeededAgent;
      recordWork(first, from, length);
      if (random() < 0.4)
        recordWork(ownAgents[drawBelow(ownAgents.length)] as SeededAgent, from + drawBelow(40), length);
    }
  }
  // Aggregates all but the newest rows.
  await collector.flush();
  await foldUsage(store, Math.floor(NOW / BUCKET_MS) - 2 - drawBelow(300));
  return { people, templates, minutes, samples };
};
