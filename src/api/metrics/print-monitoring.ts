// Generates the monitoring files from the table (monitoring.ts): a Grafana dashboard, Prometheus alert rules, and the alert table of
// docs/monitoring.md.
import { ALERTS, PANELS, type Panel } from "./monitoring.ts";

const PANEL_WIDTH = 12;
const PANEL_HEIGHT = 8;

/** Returns the dashboard in Grafana's JSON model. */
export const dashboardJson = (): string => {
  let y = 0;
  let id = 0;
  const panels = [...new Set(PANELS.map(({ group }) => group))].flatMap((group) => {
    const row = {
      id: ++id,
      type: "row",
      title: group,
      collapsed: false,
      gridPos: { x: 0, y, w: 24, h: 1 },
      panels: [],
    };
    y += 1;
    const groupPanels = PANELS.filter((panel) => panel.group === group).map((panel, i) => {
      const position = { x: (i % 2) * PANEL_WIDTH, y: y + Math.floor(i / 2) * PANEL_HEIGHT };
      return toPanelJson(panel, ++id, position);
    });
    y += Math.ceil(groupPanels.length / 2) * PANEL_HEIGHT;
    return [row, ...groupPanels];
  });
  const dashboard = {
    uid: "slipway",
    title: "Slipway",
    tags: ["slipway"],
    schemaVersion: 39,
    editable: true,
    refresh: "30s",
    time: { from: "now-6h", to: "now" },
    templating: { list: [SOURCE_VARIABLE, JOB_VARIABLE] },
    panels,
  };
  return `${JSON.stringify(dashboard, null, 2)}\n`;
};

const SOURCE_VARIABLE = { name: "source", label: "Data source", type: "datasource", query: "prometheus" };
const JOB_VARIABLE = {
  name: "job",
  label: "Job",
  type: "query",
  datasource: { type: "prometheus", uid: "$source" },
  query: { query: "label_values(slipway_build_info, job)", refId: "job" },
  refresh: 2,
};

const toPanelJson = ({ title, unit, queries }: Panel, id: number, position: { x: number; y: number }) => ({
  id,
  type: unit === "dateTimeFromNow" ? "stat" : "timeseries",
  title,
  datasource: { type: "prometheus", uid: "$source" },
  gridPos: { ...position, w: PANEL_WIDTH, h: PANEL_HEIGHT },
  fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
  targets: queries.map(({ expr, legend }, i) => ({
    refId: String.fromCharCode(65 + i),
    expr,
    legendFormat: legend === "" ? "{{instance}}" : `{{instance}} ${legend}`,
  })),
});

/** Returns the alerts as a file of Prometheus rules. */
export const alertRules = (): string => {
  const quote = (text: string): string => JSON.stringify(text);
  const rules = ALERTS.map(({ name, expr, for: duration, severity, summary, action }) =>
    [
      `      - alert: ${name}`,
      `        expr: ${quote(expr)}`,
      `        for: ${duration}`,
      "        labels:",
      `          severity: ${severity}`,
      "        annotations:",
      `          summary: ${quote(summary)}`,
      `          description: ${quote(action.replace(/ \(\[[^\]]+\]\([^)]+\)\)/g, ""))}`,
    ].join("\n"),
  );
  return `# Printed by \`bun run docs\`. Expects the scrape job \`slipway\`.\ngroups:\n  - name: slipway\n    rules:\n${rules.join("\n")}\n`;
};

/** Returns the alerts as a table for people. */
export const alertTable = (): string =>
  [
    "| alert | severity | what is wrong | what to do |",
    "|---|---|---|---|",
    ...ALERTS.map(({ name, severity, summary, action }) => `| \`${name}\` | ${severity} | ${summary} | ${action} |`),
  ].join("\n");
