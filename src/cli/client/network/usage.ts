// Reports to the server each minute that an editor is used in a workspace, so that it does not reach its idle timeout and insights show the
// editor.
import { suggestName } from "#base/config/suggest.ts";
import { usageError } from "#base/usage-error.ts";
import { USAGE_APPS } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import type { ConnectionUse } from "#src/wire/index.ts";
import type { VerbInput } from "../../verb.ts";

const REPORT_INTERVAL_MS = 60_000;
const DISABLED = "disable";

type App = (typeof USAGE_APPS)[number];

/** The app that `--usage-app` names; undefined if usage is not reported. Throws UsageError. */
export const parseUsageApp = (given: string | undefined): App | undefined => {
  if (given === undefined || given === DISABLED) return undefined;
  const app = USAGE_APPS.find((one) => one === given);
  if (!app) {
    const names = [...USAGE_APPS, DISABLED];
    throw usageError("--usage-app", `expected one of ${names.join(", ")}.${suggestName(given, names)}`);
  }
  return app;
};

type UsageReport = {
  readonly workspace_id: string;
  readonly agent_id: string;
  readonly app: App | undefined;
  /** Activity on the connection; undefined if unknown. */
  readonly use: ConnectionUse | undefined;
};

/**
 * Reports usage immediately, and then each minute in which the connection was used, until disposed. An idle editor does not count as usage.
 */
export const reportUsage = (
  { clock }: Pick<VerbInput, "clock">,
  client: Client,
  { workspace_id, agent_id, app, use }: UsageReport,
): Disposable => {
  if (app === undefined) return { [Symbol.dispose]() {} };
  // If the server is unreachable, the next minute reports again.
  const report = () =>
    void client.post(`/api/v2/workspaces/${workspace_id}/usage`, { agent_id, app_name: app }).catch(() => {});
  const timer = clock.every(REPORT_INTERVAL_MS, () => {
    if (use === undefined || use.takeUsed()) report();
  });
  report();
  return { [Symbol.dispose]: () => timer.cancel() };
};
