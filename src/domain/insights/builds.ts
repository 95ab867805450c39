// Build statistics of a range, by day or week and by template.
import { toRfc3339 } from "#base/clock.ts";
import { listTemplates } from "#db/templates/templates.ts";
import { type BuildFigures, sumBuilds } from "#db/workspaces/build-figures.ts";
import type { BuildInsights } from "#schema/insights.ts";
import type { DomainContext } from "../context.ts";
import { type Interval, listEdges, type Range, toIntervalParams } from "./range.ts";

const NO_BUILDS: BuildFigures = { builds: 0, failed: 0, canceled: 0, p50_ms: null, p95_ms: null };

const pickFigures = ({ builds, failed, canceled, p50_ms, p95_ms }: BuildFigures): BuildFigures => ({
  builds,
  failed,
  canceled,
  p50_ms,
  p95_ms,
});

/** For some templates, or all. Rejects with 400 for weeks that do not fit into the range. */
export const loadBuildInsights = async (
  { store }: DomainContext,
  range: Range,
  interval: Interval,
  templates: readonly string[] | undefined,
): Promise<BuildInsights> => {
  const edges = listEdges(range, interval);
  const filter = { ...toIntervalParams(range, interval), templates };
  const [[totals = NO_BUILDS], intervalRows, byTemplate, rows] = await Promise.all([
    store.scan(sumBuilds("all", filter)),
    store.scan(sumBuilds("interval", filter)),
    store.scan(sumBuilds("template", filter)),
    store.scan(listTemplates()),
  ]);
  const names = new Map(rows.map(({ template }) => [template.id, template]));
  const bySlot = new Map(intervalRows.map((one) => [one.slot, one]));
  return {
    report: {
      start_time: toRfc3339(range.from),
      end_time: toRfc3339(range.to),
      ...pickFigures(totals),
      intervals: edges.slice(0, -1).map((start, index) => ({
        start_time: toRfc3339(start),
        end_time: toRfc3339(edges[index + 1] ?? start),
        ...pickFigures(bySlot.get(String(index)) ?? NO_BUILDS),
      })),
      templates: byTemplate
        .map(({ slot, ...figures }) => ({
          template_id: slot,
          name: names.get(slot)?.name ?? "",
          display_name: names.get(slot)?.display_name ?? "",
          ...figures,
        }))
        .sort((a, b) => (a.name < b.name ? -1 : 1)),
    },
  };
};
