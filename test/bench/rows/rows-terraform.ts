// The Terraform row: ten parallel builds and an import at the same time, and the latency of a form with dependent parameters. It uses the
// real program with a mirrored provider. Nothing is pinned, because the server's child processes would be pinned, too.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Client } from "#src/client.ts";
import { needs } from "#test/support/needs.ts";
import { importVersion } from "#test/support/templates.ts";
import { makeTerraformTemplate, readTemplateFiles, toTerraformOptions } from "#test/support/terraform.ts";
import { readLoopDelay } from "../loop-delay.ts";
import { findFreePort, residentMiB } from "../machine.ts";
import { type Product, startProduct } from "../product.ts";
import { type Bench, type Figures, productFigure, type Row, range } from "../row.ts";

const BUILDS = 10;
const FORM_CHANGES = 30;

let folderCount = 0;

type MeasuredServer = { readonly product: Product; readonly metrics: string };

const startMeasured = async (bench: Bench): Promise<MeasuredServer> => {
  const { productCommand, dir } = bench.setup;
  if (!productCommand) throw new Error("there is no product to measure");
  const folder = join(dir, `terraform-${++folderCount}`);
  mkdirSync(folder);
  const metrics = `127.0.0.1:${await findFreePort()}`;
  const env = {
    ...restoreLowPriority(toTerraformOptions(folder).env as Record<string, string>),
    SLIPWAY_PROVISIONER_SLOTS: `${BUILDS + 1}`,
    SLIPWAY_METRICS_ADDRESS: metrics,
  };
  const product = await startProduct({ command: productCommand, dataDir: join(folder, "data"), core: undefined, env });
  return { product, metrics: `http://${metrics}/metrics` };
};

/** Removes the setting with which tests turn the lower priority off. */
const restoreLowPriority = ({ SLIPWAY_TEST_EVEN: _, ...env }: Record<string, string>): Record<string, string> => env;

const awaitBuildStatus = async (client: Client, id: string): Promise<string> => {
  for (const deadline = performance.now() + 120_000; performance.now() < deadline; await Bun.sleep(50)) {
    const { latest_build } = await client.get<Workspace>(`/api/v2/workspaces/${id}?include_deleted=true`);
    if (!["pending", "running"].includes(latest_build.job.status)) return latest_build.job.status;
  }
  return "hung";
};

/** Measures the milliseconds from a form change to its answer. Each change has new values. */
const measureFormAnswers = async (client: Client): Promise<number[]> => {
  const { version } = await makeTerraformTemplate(client, readTemplateFiles("parameters"), "questions");
  const path = `/api/v2/templateversions/${version.id}/dynamic-parameters/evaluate`;
  const times: number[] = [];
  for (const n of range(FORM_CHANGES + 1)) {
    const startedAt = performance.now();
    await client.post(path, { id: n, inputs: { required_one: `x${n}`, gpu: "true" } });
    times.push(performance.now() - startedAt);
  }
  // The first change prepares the folder and does not count.
  return times.slice(1).sort((a, b) => a - b);
};

const measureConcurrentBuilds = async (client: Client, { product, metrics }: MeasuredServer): Promise<Figures> => {
  const { template } = await makeTerraformTemplate(client, readTemplateFiles("metadata-cost"), "crowd");
  const make = async (name: string): Promise<string> => {
    const request = { name, template_id: template.id };
    return (await client.post<Workspace>("/api/v2/users/me/workspaces", request)).id;
  };
  const startedAt = performance.now();
  await awaitBuildStatus(client, await make("alone"));
  const alone_ms = performance.now() - startedAt;
  const memoryBefore = residentMiB(product.pid);
  let peakMiB = memoryBefore;
  const sampling = setInterval(() => (peakMiB = Math.max(peakMiB, residentMiB(product.pid))), 200);
  await readLoopDelay(metrics);
  const buildsStartedAt = performance.now();
  const importing = importVersion(client, readTemplateFiles("apps-and-scripts"));
  const ids = await Promise.all(range(BUILDS).map((n) => make(`crowd-${n}`)));
  const outcomes = await Promise.all(ids.map((id) => awaitBuildStatus(client, id)));
  const all_ms = performance.now() - buildsStartedAt;
  const imported = (await importing).job.status;
  const delay = await readLoopDelay(metrics);
  clearInterval(sampling);
  return {
    well: [...outcomes, imported].filter((status) => status === "succeeded").length,
    alone_ms,
    all_ms,
    growth_mb: peakMiB - memoryBefore,
    loop_p50: delay.p50,
    loop_p99: delay.p99,
    loop_max: delay.max,
  };
};

const measured: Row = {
  name: "terraform",
  title: `Terraform templates, nothing pinned: ${BUILDS} concurrent builds with an import; ${FORM_CHANGES} changes of a form, one after the other`,
  sides: ["product"],
  maxRounds: 5,
  async measure(bench) {
    const opened = await startMeasured(bench);
    await using product = opened.product;
    const client = new Client(product.url, product.adminToken);
    const times = await measureFormAnswers(client);
    const results = await measureConcurrentBuilds(client, opened);
    return { form_p50: times[FORM_CHANGES / 2] ?? Number.NaN, form_max: times.at(-1) ?? Number.NaN, ...results };
  },
  figures: {
    form_p50: "change of a form to its answer p50 ms",
    form_max: "change of a form to its answer, longest ms",
    alone_ms: "one build alone ms",
    all_ms: "all builds and the import ms",
    well: "builds and imports that succeeded",
    growth_mb: "growth of the server's memory during the builds MB",
    loop_p50: "delay of the event loop p50 ms",
    loop_p99: "delay of the event loop p99 ms",
    loop_max: "delay of the event loop, longest ms",
  },
  verdicts: [
    {
      what: "change of a form to its answer, p50",
      target: "< 600 ms",
      value: productFigure("form_p50"),
      bound: 600,
      better: "lower",
      unit: "ms",
    },
    {
      what: `${BUILDS} concurrent builds and an import that succeeded`,
      target: `${BUILDS + 1} of ${BUILDS + 1}`,
      value: productFigure("well"),
      bound: BUILDS + 1,
      better: "higher",
      unit: "count",
    },
    {
      what: "event-loop delay during the builds, as the server itself sees it, p99",
      target: "< 10 ms",
      value: productFigure("loop_p99"),
      bound: 10,
      better: "lower",
      unit: "ms",
    },
    {
      what: "growth of the server's memory during the builds",
      target: "<= 64 MB",
      value: productFigure("growth_mb"),
      bound: 64,
      better: "lower",
      unit: "MB",
    },
  ],
};

/** The row; empty if the tools are not available. */
export const terraform: Row[] = needs.terraform.found ? [measured] : [];
