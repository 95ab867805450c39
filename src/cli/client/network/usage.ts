// Tells the server each minute that an editor works in a workspace, so that it is not stopped for being idle and insights show the editor.
import { didYouMean } from "#base/config/nearest.ts";
import { usageError } from "#base/usage-error.ts";
import { USAGE_APPS } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import type { ConnectionUse } from "#src/wire/index.ts";
import type { VerbInput } from "../../verb.ts";

const EVERY_MS = 60_000;
const NONE = "disable";

type App = (typeof USAGE_APPS)[number];

/** The app that `--usage-app` names; undefined if usage is not reported. Throws UsageError. */
export const usageApp = (given: string | undefined): App | undefined => {
  if (given === undefined || given === NONE) return undefined;
  const app = USAGE_APPS.find((one) => one === given);
  if (!app) {
    const names = [...USAGE_APPS, NONE];
    throw usageError("--usage-app", `expected one of ${names.join(", ")}.${didYouMean(given, names)}`);
  }
  return app;
};

type Used = {
  readonly workspace_id: string;
  readonly agent_id: string;
  readonly app: App | undefined;
  /** What the client does with the connection; undefined where that is not known. */
  readonly use: ConnectionUse | undefined;
};

/** Tells it now, and each minute in which the connection is used until it is disposed. An editor that is only left open is no use. */
export const reportUsage = (
  { clock }: Pick<VerbInput, "clock">,
  client: Client,
  { workspace_id, agent_id, app, use }: Used,
): Disposable => {
  if (app === undefined) return { [Symbol.dispose]() {} };
  // A server that is away hears it a minute later.
  const tell = () =>
    void client.post(`/api/v2/workspaces/${workspace_id}/usage`, { agent_id, app_name: app }).catch(() => {});
  const timer = clock.every(EVERY_MS, () => {
    if (use === undefined || use.take()) tell();
  });
  tell();
  return { [Symbol.dispose]: () => timer.cancel() };
};
