// The dashboard and the alert rules name existing metrics.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { ALERTS, PANELS } from "#src/api/metrics/monitoring.ts";
import { dashboardJson } from "#src/api/metrics/print-monitoring.ts";
import { startServe } from "#test/api/edge/serve-process.ts";
import { testNeeding } from "#test/support/needs.ts";
import { findFreePort } from "#test/support/net/free-port.ts";
import { tempDirectory } from "#test/support/server.ts";

const file = (path: string): string => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
const _text = (path: string): string => readFileSync(file(path), "utf8");
const promtool = {
  found: Bun.which("promtool") !== null,
  reason: "needs promtool of the Debian package prometheus",
  file: "",
};

test("[OP-23] every metric in the dashboard or an alert is served", async () => {
  using directory = tempDirectory();
  const address = `127.0.0.1:${findFreePort()}`;
  await using _serve = await startServe(directory.path, { SLIPWAY_METRICS_ADDRESS: address });
  const served = await (await fetch(`http://${address}/metrics`)).text();
  const requests = [
    ...PANELS.flatMap(({ queries }) => queries.map(({ expr }) => expr)),
    ...ALERTS.map(({ expr }) => expr),
  ];
  const names = new Set(requests.flatMap((expr) => expr.match(/\b(?:slipway|process)_\w+/g) ?? []));
  // Only for nodes of a cluster.
  const ofNodes = ["slipway_database_answers", "slipway_database_standbys", "slipway_database_standby_required"];
  const missing = [...names].filter(
    (name) => !ofNodes.includes(name) && !served.includes(`# TYPE ${name.replace(/_bucket$/, "")} `),
  );
  expect(missing).toEqual([]);
});

test("[OP-23] the dashboard's panels are side by side with unique IDs", () => {
  const { panels } = JSON.parse(dashboardJson()) as { panels: { id: number; gridPos: { x: number; y: number } }[] };
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  expect(new Set(panels.map(({ gridPos: { x, y } }) => `${x} ${y}`)).size).toBe(panels.length);
});

testNeeding([promtool], "[OP-23] promtool takes the rules", async () => {
  const child = Bun.spawn(["promtool", "check", "rules", file("deploy/monitoring/alerts.yaml")], {
    stdout: "pipe",
    stderr: "pipe",
  });
  const message = (await child.stdout.text()) + (await child.stderr.text());
  expect([await child.exited, message]).toEqual([0, expect.stringContaining(`${ALERTS.length} rules found`)]);
});
