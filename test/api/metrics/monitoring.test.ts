// The dashboard and the alert rules use existing metrics.
import { expect, test } from "bun:test";

import { fileURLToPath } from "node:url";
import { ALERTS, PANELS } from "#src/api/metrics/monitoring.ts";
import { dashboardJson } from "#src/api/metrics/print-monitoring.ts";
import { startServe } from "#test/api/edge/serve-process.ts";
import { testNeeding } from "#test/support/needs.ts";
import { findFreePort } from "#test/support/net/free-port.ts";
import { tempDirectory } from "#test/support/server.ts";

const resolvePath = (path: string): string => fileURLToPath(new URL(`../../../${path}`, import.meta.url));

const promtool = {
  found: Bun.which("promtool") !== null,
  reason: "needs promtool of the Debian package prometheus",
  file: "",
};

test("[OP-23] the server has every metric of the dashboard and the alerts", async () => {
  using directory = tempDirectory();
  const address = `127.0.0.1:${findFreePort()}`;
  await using _serve = await startServe(directory.path, { SLIPWAY_METRICS_ADDRESS: address });
  const metrics = await (await fetch(`http://${address}/metrics`)).text();
  const expressions = [
    ...PANELS.flatMap(({ queries }) => queries.map(({ expr }) => expr)),
    ...ALERTS.map(({ expr }) => expr),
  ];
  const names = new Set(expressions.flatMap((expr) => expr.match(/\b(?:slipway|process)_\w+/g) ?? []));
  // Only nodes of a cluster have these metrics.
  const clusterMetrics = ["slipway_database_answers", "slipway_database_standbys", "slipway_database_standby_required"];
  const missing = [...names].filter(
    (name) => !clusterMetrics.includes(name) && !metrics.includes(`# TYPE ${name.replace(/_bucket$/, "")} `),
  );
  expect(missing).toEqual([]);
});

test("[OP-23] the dashboard's panels are side by side with unique IDs", () => {
  const { panels } = JSON.parse(dashboardJson()) as { panels: { id: number; gridPos: { x: number; y: number } }[] };
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  expect(new Set(panels.map(({ gridPos: { x, y } }) => `${x} ${y}`)).size).toBe(panels.length);
});

testNeeding([promtool], "[OP-23] promtool accepts the alert rules", async () => {
  const child = Bun.spawn(["promtool", "check", "rules", resolvePath("deploy/monitoring/alerts.yaml")], {
    stdout: "pipe",
    stderr: "pipe",
  });
  const message = (await child.stdout.text()) + (await child.stderr.text());
  expect([await child.exited, message]).toEqual([0, expect.stringContaining(`${ALERTS.length} rules found`)]);
});
