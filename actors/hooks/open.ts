// Constructs lifecycle hooks from the settings. Called by src/context/context.ts; `slipway doctor` tests the consumer.
import type { Clock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import type { Store } from "#db/engine/store.ts";
import { loadDeploymentId } from "#db/settings.ts";
import type { Consumer } from "#src/hooks/exchange.ts";
import { type HookMode, Hooks, type WorkspaceHooks } from "#src/hooks/hooks.ts";
import type { Service } from "../runtime/service.ts";
import { HookLedger } from "./ledger.ts";

type Deps = {
  readonly config: Config;
  readonly clock: Clock;
  readonly store: Store;
  /** Hooks declared by workspaces, used only where the setting allows them. */
  readonly workspaces: WorkspaceHooks;
};

export type HookService = {
  readonly hooks: Hooks;
  readonly services: readonly Service[];
};

export const openHooks = ({ config, clock, store, workspaces }: Deps): HookService => {
  const ledger = new HookLedger({ store, clock, days: config.hook_ledger_days });
  const hooks = new Hooks({
    clock,
    consumer: makeConsumer(config),
    mode: toMode(config),
    recordsContents: config.hook_ledger_contents,
    issuer: () => loadDeploymentId(store),
    record: (entry) => ledger.record(entry),
    workspaces: config.workspace_hooks ? workspaces : undefined,
  });
  return { hooks, services: [ledger, { stop: () => hooks.drain() }] };
};

/** Returns undefined when no consumer is configured. */
export const makeConsumer = ({
  hook_url: url,
  hook_secret,
  hook_previous_secret,
  hook_timeout,
}: Config): Consumer | undefined => {
  if (url === undefined || hook_secret === undefined) return undefined;
  const secrets = [hook_secret, ...(hook_previous_secret === undefined ? [] : [hook_previous_secret])];
  return { url, secrets, timeout_ms: hook_timeout };
};

const toMode = ({ hook_url, hook_enabled, hook_mode }: Config): HookMode =>
  hook_url !== undefined && hook_enabled ? hook_mode : "off";
