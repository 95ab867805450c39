// The audit rows: pages of a long audit log with many filters, and the cost of auditing and metrics while logs are ingested. Only the
// product is measured; the targets are a time and a share.
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { startProduct } from "../product.ts";
import { median } from "../report.ts";
import { countFaults, type Figures, productFigure, type Row, range } from "../row.ts";
import { entryAt, ORGANIZATIONS, PEOPLE, POPULAR, ROBOT, seedAudit } from "../seeds/seed-audit.ts";
import type { Target } from "../sides.ts";

const ENTRIES = Number(process.env.BENCH_AUDIT ?? 5_000_000);
const ROUNDS = 50;
const DAY_MS = 86_400_000;

const percentile = (times: readonly number[], share: number): number => {
  const sorted = [...times].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
};

const daysAgo = (days: number): string => new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10);

type Question = {
  readonly q: (n: number) => string;
  /** Offset of the page from the top. With `behind`, the page instead starts after the entry at this share of the log. */
  readonly offset?: number;
  readonly behind?: number;
  /**
   * True if an auditor of all organizations sends the request, who is not an auditor of the site and sees only entries of organizations.
   */
  readonly byAuditor?: boolean;
};

const makeQuestion = (q: (n: number) => string, options: Omit<Question, "q"> = {}): Question => ({ q, ...options });
const person = (n: number): string => `username:person-${1 + ((n * 37) % (PEOPLE - 1))}`;
const team = (n: number): string => `organization:team-${n % ORGANIZATIONS}`;

/**
 * Typical filters, and the worst known ones: `never` combines values that thousands to a million entries have, but no entry has all of
 * them. `n` makes each query unique.
 */
const QUESTIONS: Readonly<Record<string, Question>> = {
  newest: makeQuestion(() => ""),
  kind: makeQuestion((n) => ["workspace_build", "chat", "template", "user"][n % 4] ?? "user"),
  kind_and_action: makeQuestion(
    (n) => `resource_type:${n % 2 ? "user" : "api_key"} action:${n % 2 ? "delete" : "login"}`,
  ),
  action: makeQuestion((n) => `action:${n % 2 ? "delete" : "write"}`),
  person: makeQuestion(person),
  email: makeQuestion((n) => `email:p${1 + ((n * 37) % (PEOPLE - 1))}@example.com`),
  person_and_kind: makeQuestion((n) => `${person(n)} resource_type:template action:write`),
  robot: makeQuestion(() => `username:${ROBOT}`),
  robot_and_kind_never: makeQuestion(() => `username:${ROBOT} resource_type:template action:write`),
  robot_and_team: makeQuestion((n) => `username:${ROBOT} ${team(n)}`),
  team: makeQuestion(team),
  team_and_kind: makeQuestion((n) => `${team(n)} resource_type:template`),
  team_and_login_never: makeQuestion((n) => `${team(n)} action:login`),
  thing: makeQuestion((n) => `resource_target:thing-${((n * 997) % 39_999) + 1}`),
  popular_name: makeQuestion(() => `resource_target:${POPULAR}`),
  popular_name_and_person: makeQuestion((n) => `resource_target:${POPULAR} ${person(n)}`),
  popular_name_and_kind: makeQuestion((n) => `resource_target:${POPULAR} ${n % 2 ? "user" : "chat"}`),
  popular_name_and_team: makeQuestion((n) => `resource_target:${POPULAR} ${team(n)}`),
  days: makeQuestion((n) => `date_from:${daysAgo(n * 20 + 9)} date_to:${daysAgo(n * 20)}`),
  kind_and_days: makeQuestion((n) => `chat date_to:${daysAgo(n * 20)}`),
  rare_kind_far_back: makeQuestion((n) => `user date_to:${daysAgo(1000 + n)}`),
  reason: makeQuestion(() => "build_reason:autostart"),
  reason_and_action_never: makeQuestion(() => "build_reason:autostart action:stop"),
  auditor_of_teams: makeQuestion(() => "", { byAuditor: true }),
  auditor_of_teams_and_kind: makeQuestion((n) => (n % 2 ? "user" : "template"), { byAuditor: true }),
  auditor_of_teams_and_person: makeQuestion(person, { byAuditor: true }),
  far_behind: makeQuestion(() => "", { behind: 0.8 }),
  far_behind_of_robot: makeQuestion(() => `username:${ROBOT}`, { behind: 0.8 }),
  far_by_offset: makeQuestion(() => "", { offset: Math.floor(ENTRIES / 50) }),
};

const AUDITOR = { email: "audit@example.com", username: "auditor", password: "Bench-only-7e0a4d" };

export const audit: Row = {
  name: "audit",
  title: `Pages of 25 of an audit log of ${ENTRIES.toLocaleString("en")} entries, ${Object.keys(QUESTIONS).length} kinds of question, one after the other`,
  sides: ["product"],
  maxRounds: 1,
  async measure(bench) {
    const { productCommand: command, core, dir } = bench.setup;
    if (!command) throw new Error("there is no product to measure");
    const dataDir = join(dir, `audit-${crypto.randomUUID()}`);
    mkdirSync(dataDir);
    const options = { command, core, dataDir };
    const { id } = await createAuditor(options);
    const seeded = seedAudit(join(dataDir, "slipway.db"), Date.now(), ENTRIES, id);
    await using product = await startProduct(options);
    const auditor = await signIn(product.url, AUDITOR);
    const measureQuestion = async ({ q, offset, behind, byAuditor }: Question, n: number): Promise<number> => {
      const query = new URLSearchParams({ limit: "25", q: q(n) });
      if (offset !== undefined) query.set("offset", String(offset));
      if (behind !== undefined) query.set("after_id", entryAt(Math.floor(ENTRIES * (1 - behind)) - n));
      const startedAt = performance.now();
      const response = await fetch(`${product.url}/api/v2/audit?${query}`, {
        headers: { "Service-Session-Token": byAuditor ? auditor : product.adminToken },
      });
      await response.arrayBuffer();
      if (!response.ok) throw new Error(`${query}: ${response.status}`);
      return performance.now() - startedAt;
    };
    const figures: Figures = { seeded };
    const allTimes: number[] = [];
    const ticksBefore = readCpuTicks(product.pid);
    for (const [name, question] of Object.entries(QUESTIONS)) {
      const times: number[] = [];
      for (let n = 0; n < ROUNDS; n++) times.push(await measureQuestion(question, n));
      allTimes.push(...times);
      figures[`${name}_first`] = times[0] ?? 0;
      figures[`${name}_p50`] = percentile(times.slice(1), 0.5);
      figures[`${name}_p99`] = percentile(times.slice(1), 0.99);
    }
    figures.all_p50 = percentile(allTimes, 0.5);
    figures.all_p99 = percentile(allTimes, 0.99);
    figures.processor = ((readCpuTicks(product.pid) - ticksBefore) * 10) / allTimes.length;
    return figures;
  },
  figures: {
    ...Object.fromEntries(
      Object.keys(QUESTIONS).flatMap((name) =>
        ["first", "p50", "p99"].map((figure) => [`${name}_${figure}`, `${name.replaceAll("_", " ")} ${figure} ms`]),
      ),
    ),
    all_p50: "all p50 ms",
    all_p99: "all p99 ms, the first of each among them",
    processor: "processor time of a page, ms",
    seeded: "seconds to make the log",
  },
  verdicts: [
    {
      what: `audit list over ${ENTRIES.toLocaleString("en")} entries, filtered, p99`,
      target: "<= 50 ms",
      value: productFigure("all_p99"),
      bound: 50,
      better: "lower",
      unit: "ms",
    },
  ],
};

type Login = { readonly email: string; readonly password: string };

const signIn = async (url: string, { email, password }: Login): Promise<string> => {
  const body = JSON.stringify({ email, password });
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${url}/api/v2/users/login`, { method: "POST", headers, body });
  return ((await response.json()) as { session_token: string }).session_token;
};

/** Creates a user who becomes the auditor of the seeded organizations, and stops the server again. Returns the user's ID. */
const createAuditor = async (options: Parameters<typeof startProduct>[0]): Promise<{ id: string }> => {
  await using product = await startProduct(options);
  const headers = { "content-type": "application/json", "Service-Session-Token": product.adminToken };
  const body = JSON.stringify(AUDITOR);
  const response = await fetch(`${product.url}/api/v2/users`, { method: "POST", headers, body });
  if (!response.ok) throw new Error(`an auditor could not be made: ${response.status}`);
  return (await response.json()) as { id: string };
};

const PAIRS = 10;
const WARM_UP_WINDOWS = 2;
const LANES = 8;
/** Well below the capacity of one core, so that other load changes the latency and not the work. */
const BATCHES_PER_S = 250;

/** Returns a process's CPU time in kernel ticks, which does not depend on other load on the machine. */
const readCpuTicks = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return Number(fields[11]) + Number(fields[12]);
};

export const auditCost: Row = {
  name: "audit-cost",
  title: `The load of \`ingest\` at ${BATCHES_PER_S} batches a second for a server with figures for Prometheus and one without, in turn; auditing is always on`,
  sides: ["product"],
  maxRounds: 1,
  async measure(bench) {
    // Each window has new agents, because a follower of an agent with existing lines receives all of them.
    const agents = LANES * (PAIRS + WARM_UP_WINDOWS);
    await using plain = await bench.start("product", { agents });
    await using metered = await bench.start("product", { agents, env: METERED });
    let faultCount = 0;
    const linesPerTick = async (target: Target, window: number): Promise<number> => {
      const agentIndexes = range(LANES).map((lane) => window * LANES + lane);
      const plan = [...agentIndexes.map(target.patch), ...agentIndexes.map(target.follow)];
      const ticksBefore = readCpuTicks(target.pid);
      const result = await bench.driver.load(target.port, plan, { secs: bench.seconds, rate: BATCHES_PER_S });
      faultCount += countFaults(result).faults ?? 0;
      return (result.lines_per_s * bench.seconds) / (readCpuTicks(target.pid) - ticksBefore);
    };
    // These windows are a warm-up and do not count: a newly started program is still being compiled.
    for (const window of range(WARM_UP_WINDOWS))
      for (const target of [plain, metered]) await linesPerTick(target, window);
    faultCount = 0;
    const shares: number[] = [];
    const costs = new Map<Target, number[]>([plain, metered].map((target) => [target, []]));
    for (let pair = 0; pair < PAIRS; pair++) {
      // The order alternates, so that a machine that slows down favors neither of them.
      const order = pair % 2 === 0 ? [plain, metered] : [metered, plain];
      const lines = new Map<Target, number>();
      for (const target of order) {
        const perTick = await linesPerTick(target, WARM_UP_WINDOWS + pair);
        lines.set(target, perTick);
        costs.get(target)?.push(1000 / perTick);
      }
      shares.push((lines.get(metered) ?? 0) / (lines.get(plain) || 1));
    }
    return {
      share: median(shares),
      plain: median(costs.get(plain) ?? []),
      metered: median(costs.get(metered) ?? []),
      lowest: Math.min(...shares),
      highest: Math.max(...shares),
      faults: faultCount,
    };
  },
  figures: {
    share: "lines for the same processor time, with figures / without, median of pairs",
    plain: "processor time of a batch of 100 lines without figures, ms",
    metered: "the same with figures, ms",
    lowest: "lowest pair",
    highest: "highest pair",
    faults: "faults",
  },
  verdicts: [
    {
      what: "lines for the same processor time, with figures and auditing / without figures",
      target: ">= 0.97",
      value: productFigure("share"),
      bound: 0.97,
      better: "higher",
      unit: "ratio",
    },
  ],
};

const METERED = { SLIPWAY_METRICS_ADDRESS: "127.0.0.1:0" };
