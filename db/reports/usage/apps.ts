// Usage of each app for the templates report: minutes, number of sessions (`runs`), and templates (facts/platform 6.2). Parallel use in
// several templates counts at most 30 minutes per bucket. Adjacent buckets are one session, even with different templates.
import { BUILTIN_APPS } from "#schema/workspaces/usage-app.ts";
import type { ReadRows } from "../../engine/rows.ts";
import { ANY_APP, BLOCK, countRuns, MAX_BUCKET_MINUTES } from "./block.ts";
import { formatAppName, KEY_KINDS } from "./keys.ts";
import type { ReportPart } from "./parts.ts";
import type { Group } from "./walk.ts";

type AppTotals = { minutes: number; runs: number; templates: Set<number> };

/** Combines user and app into one number. */
const toUseNumber = (user: number, app: number): number => user * APPS + app;
const toAppNumber = (use: number): number => use % APPS;
const APPS = 2 ** 28;

export class AppFigures implements ReportPart {
  readonly #from: number;
  readonly #to: number;
  readonly #figures = new Map<number, AppTotals>();
  /** Maps a session to the bucket after the block in which it was still active at the end. */
  readonly #open = new Map<number, number>();
  /** Sessions in the first and in the last bucket, which may continue in neighboring parts. */
  readonly #atStart = new Set<number>();
  #atEnd = new Set<number>();

  /** Buckets [from, to). */
  constructor(from: number, to: number) {
    this.#from = from;
    this.#to = to;
  }

  get weight(): number {
    return this.#figures.size * 200 + (this.#open.size + this.#atStart.size + this.#atEnd.size) * 32;
  }

  /** Groups must arrive in order of blocks. */
  add(group: Group): void {
    if (!group.hasSeparateTemplates) this.#addMerged(group);
    else if (group.coversBlock) this.#addDigests(group);
    else this.#addDetails(group);
  }

  #getFigures(app: number): AppTotals {
    let figures = this.#figures.get(app);
    if (!figures) {
      figures = { minutes: 0, runs: 0, templates: new Set() };
      this.#figures.set(app, figures);
    }
    return figures;
  }

  /** Continues a session across the boundary of two blocks. */
  #join(group: Group, app: number, figures: AppTotals, atStart: boolean, atEnd: boolean): void {
    const use = toUseNumber(group.user, app);
    if (atStart) {
      if (group.start + group.low === this.#from) this.#atStart.add(use);
      else if (this.#open.get(use) === group.start) figures.runs--;
    }
    if (!atEnd) return;
    if (group.start + group.high === this.#to) this.#atEnd.add(use);
    else this.#open.set(use, group.start + BLOCK);
  }

  #addDigests(group: Group): void {
    const edges = new Map<number, { start: boolean; end: boolean }>();
    for (const { digest, template } of group.rows) {
      digest.eachApp((app, minutes, runs, atStart, atEnd) => {
        const figures = this.#getFigures(app);
        figures.minutes += minutes;
        figures.runs += runs;
        figures.templates.add(template);
        if (!atStart && !atEnd) return;
        const edge = edges.get(app);
        edges.set(app, { start: atStart || edge?.start === true, end: atEnd || edge?.end === true });
      });
    }
    for (const [app, { start, end }] of edges) this.#join(group, app, this.#getFigures(app), start, end);
  }

  /** No two templates were used in the same or adjacent buckets, so their figures can be added. */
  #addDetails(group: Group): void {
    const { low, high, rows } = group;
    for (const { detail, template } of rows) {
      const read = detail();
      for (const app of read.apps) {
        if (app === ANY_APP) continue;
        let [sum, runs, first, last] = [0, 0, -1, -2];
        read.eachBucket(app, low, high, (i, minutes) => {
          sum += minutes;
          if (i !== last + 1) runs++;
          if (first < 0) first = i;
          last = i;
        });
        if (runs === 0) continue;
        const figures = this.#getFigures(app);
        figures.minutes += sum;
        figures.runs += runs;
        figures.templates.add(template);
        this.#join(group, app, figures, first === low, last === high - 1);
      }
    }
  }

  #addMerged(group: Group): void {
    const { low, high } = group;
    const sums = new Map<number, Uint8Array>();
    for (const { detail, template } of group.rows) {
      const read = detail();
      for (const app of read.apps) {
        if (app === ANY_APP) continue;
        const sum = sums.get(app) ?? new Uint8Array(BLOCK);
        sums.set(app, sum);
        let used = false;
        read.eachBucket(app, low, high, (i, minutes) => {
          used = true;
          sum[i] = Math.min(MAX_BUCKET_MINUTES, (sum[i] as number) + minutes);
        });
        if (used) this.#getFigures(app).templates.add(template);
      }
    }
    for (const [app, sum] of sums) {
      const runs = countRuns(sum, low, high);
      if (runs === 0) continue;
      const figures = this.#getFigures(app);
      for (let i = low; i < high; i++) figures.minutes += sum[i] as number;
      figures.runs += runs;
      this.#join(group, app, figures, sum[low] !== 0, sum[high - 1] !== 0);
    }
  }

  /** Joins figures of consecutive parts. A session that continues into the next part counts once. */
  static joinParts(parts: readonly AppFigures[]): AppFigures {
    const all = new AppFigures(0, 0);
    for (const part of parts) {
      for (const [app, { minutes, runs, templates }] of part.#figures) {
        const figures = all.#getFigures(app);
        figures.minutes += minutes;
        figures.runs += runs;
        for (const template of templates) figures.templates.add(template);
      }
      for (const use of part.#atStart) if (all.#atEnd.has(use)) all.#getFigures(toAppNumber(use)).runs--;
      all.#atEnd = part.#atEnd;
    }
    return all;
  }

  /** Always lists built-in apps first, then apps of templates by slug, name and icon. */
  async present(read: ReadRows, listTemplateIds: (keys: Iterable<number>) => string[]): Promise<object[]> {
    const rows = await read("select key, name from usage_keys where kind = ?", [KEY_KINDS.app]);
    const names = new Map(rows as [number, string][]);
    const byName = new Map([...this.#figures].map(([app, figures]) => [names.get(app) ?? "", figures]));
    const presentApp = (name: string, figures: AppTotals | undefined) => {
      const [slug, display_name, icon, type] = JSON.parse(name) as string[];
      return {
        display_name,
        icon,
        seconds: (figures?.minutes ?? 0) * 60,
        slug,
        template_ids: listTemplateIds(figures?.templates ?? []),
        times_used: figures?.runs ?? 0,
        type,
      };
    };
    const builtin = BUILTIN_APPS.map((app) => formatAppName({ ...app, type: "builtin" }));
    const others = [...byName.keys()].filter((name) => name !== "" && !builtin.includes(name));
    const parseName = (name: string): string[] => JSON.parse(name) as string[];
    others.sort((a, b) => compareTexts(parseName(a), parseName(b)));
    return [...builtin, ...others].map((name) => presentApp(name, byName.get(name)));
  }
}

const compareTexts = (a: readonly string[], b: readonly string[]): number => {
  for (const [i, one] of a.entries()) {
    const other = b[i] ?? "";
    if (one !== other) return one < other ? -1 : 1;
  }
  return 0;
};
