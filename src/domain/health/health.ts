// The deployment's health as seen by the running server: the checks of `slipway doctor`, and whether it can reach itself. Checked at most
// once a minute; dismissed warnings are a setting (rules DP-5, DP-6).
import type { ModelConfigRow, ModelProviderRow, ModelSettings } from "#actors/models/model-settings.ts";
import type { PrebuildKeeper, PrebuildProblem } from "#actors/prebuilds/keeper.ts";
import { type Clock, toRfc3339 } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import { readStart } from "#base/json/read.ts";
import { describeNetworkError } from "#base/network/failure-words.ts";
import type { Store } from "#db/engine/store.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import { findSetting, upsertSetting } from "#db/settings.ts";
import type { HealthReport, HealthSettings } from "#schema/deployment/health.ts";
import type { HomeBackupReport } from "#schema/workspaces/home-backup.ts";
import type { Workers } from "#src/provisioners/external/workers.ts";
import type { Network } from "../tailnet/network.ts";
import { examine } from "./checks.ts";
import type { Finding } from "./finding.ts";
import { checkHomeBackups } from "./home-backups.ts";
import { type Measurements, makeReport } from "./report.ts";

const MAX_FINDINGS = 20;

const checkPrebuilds = (problems: readonly PrebuildProblem[]): Finding[] =>
  problems.slice(0, MAX_FINDINGS).map(({ template_name, preset_name, reason }) => ({
    name: "prebuilds",
    status: "warn",
    detail: `${preset_name === "" ? "a workspace" : `preset ${preset_name}`} of template ${template_name} cannot be prebuilt: ${reason}`,
  }));

const REPORT_TTL_MS = 60_000;
const MIN_INTERVAL_MS = 1_000;
const RESPONSE_TIMEOUT_MS = 5_000;
const READ_COUNT = 5;
const SETTING = "health_dismissed";

export type HealthDeps = {
  readonly config: Config;
  readonly clock: Clock;
  readonly store: Store;
  readonly tailnet: Network;
  readonly workers: Workers;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly accessUrl: () => URL;
  readonly prebuilds: () => Pick<PrebuildKeeper, "problems">;
  readonly modelSettings: () => Pick<ModelSettings, "list">;
  readonly homeBackups: () => Promise<HomeBackupReport>;
};

export class Health {
  readonly #deps: HealthDeps;
  #measurements: Promise<Measurements> | undefined;
  #checkedAt = 0;

  constructor(deps: HealthDeps) {
    this.#deps = deps;
  }

  /** With `force`, checks again unless the last check began within the last second. Concurrent callers share one check. */
  async report(force: boolean): Promise<HealthReport> {
    const now = this.#deps.clock.now();
    if (this.#measurements === undefined || now - this.#checkedAt >= (force ? MIN_INTERVAL_MS : REPORT_TTL_MS)) {
      this.#checkedAt = now;
      const measurements = this.#examine();
      this.#measurements = measurements;
      measurements.catch(() => {
        if (this.#measurements === measurements) this.#measurements = undefined;
      });
    }
    const { dismissed_healthchecks } = await readHealthSettings(this.#deps.store);
    return makeReport(await this.#measurements, new Set(dismissed_healthchecks));
  }

  async #examine(): Promise<Measurements> {
    const { config, clock, environment, tailnet, workers, prebuilds } = this.#deps;
    const [findings, access, socket] = await Promise.all([
      examine(config, clock, true, environment),
      this.#checkAccessUrl(),
      this.#checkWebSocket(),
    ]);
    const { coordinator, relay } = await tailnet.loadAll();
    const { peers, tunnels } = coordinator;
    const { clients } = relay;
    return {
      at: toRfc3339(clock.now()),
      findings: [
        ...findings,
        ...checkHomeBackups(await this.#deps.homeBackups()),
        ...checkPrebuilds(prebuilds().problems()),
        ...checkDefaultModel(await this.#deps.modelSettings().list()),
      ],
      access,
      socket,
      database: await this.#measureDatabase(),
      relay: { clients, peers, tunnels },
      workers: workers.listRunning(),
    };
  }

  /** Requests itself at the URL that people and workspaces use. */
  async #checkAccessUrl(): Promise<Measurements["access"]> {
    const url = this.#deps.accessUrl();
    const timeout = new AbortController();
    const limit = this.#deps.clock.after(RESPONSE_TIMEOUT_MS, () => timeout.abort());
    try {
      const answer = await fetch(new URL("/healthz", url), { signal: timeout.signal, redirect: "manual" });
      const text = await readStart(answer, 200);
      const error = answer.ok ? {} : { error: `The access URL answers ${answer.status} to /healthz.` };
      return { url: url.href, status: answer.status, text, ...error };
    } catch (error) {
      return {
        url: url.href,
        status: 0,
        text: "",
        error: `The access URL cannot be reached: ${describeNetworkError(error)}`,
      };
    } finally {
      limit.cancel();
    }
  }

  /** Opens a WebSocket to the relay as agents and editors do, because a proxy may forward requests but not WebSockets. */
  #checkWebSocket(): Promise<Measurements["socket"]> {
    const url = new URL("/derp", this.#deps.accessUrl());
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(url, "derp");
    const { promise, resolve } = Promise.withResolvers<Measurements["socket"]>();
    const limit = this.#deps.clock.after(RESPONSE_TIMEOUT_MS, () =>
      resolve({ error: "No WebSocket opens at the access URL." }),
    );
    socket.onopen = () => resolve({});
    socket.onerror = () =>
      resolve({
        error: "The server cannot open a WebSocket at the access URL. Check that the proxy allows WebSockets.",
      });
    return promise.finally(() => {
      limit.cancel();
      socket.close();
    });
  }

  async #measureDatabase(): Promise<Measurements["database"]> {
    const { store, clock } = this.#deps;
    const times: number[] = [];
    try {
      for (let i = 0; i < READ_COUNT; i++) {
        const beganAt = clock.monotonic();
        await store.get(findSetting({ key: "deployment_id" }));
        times.push(clock.monotonic() - beganAt);
      }
    } catch (error) {
      return { ms: 0, error: describeNetworkError(error) };
    }
    return { ms: times.sort((a, b) => a - b)[Math.floor(READ_COUNT / 2)] ?? 0 };
  }
}

export const readHealthSettings = async (store: Store): Promise<HealthSettings> => {
  const found = await store.get(findSetting({ key: SETTING }));
  return { dismissed_healthchecks: found ? (JSON.parse(found.value) as string[]) : [] };
};

/** Returns false when nothing has changed. */
export const changeHealthSettings = async (
  { store, clock }: { readonly store: Store; readonly clock: Clock },
  { dismissed_healthchecks }: HealthSettings,
): Promise<boolean> => {
  const before = await readHealthSettings(store);
  const after = { dismissed_healthchecks: [...new Set(dismissed_healthchecks)].sort() };
  if (Bun.deepEquals(before, after)) return false;
  await store.commit([
    upsertSetting({ key: SETTING, value: JSON.stringify(after.dismissed_healthchecks) }),
    insertAudit({
      now: clock.now(),
      action: "write",
      resource_type: "health_settings",
      target: "dismissed",
      before,
      after,
    }),
  ]);
  return true;
};

type ModelLists = { readonly providers: readonly ModelProviderRow[]; readonly models: readonly ModelConfigRow[] };

/** Returns a warning when models exist and none of them is an enabled default. */
const checkDefaultModel = ({ providers, models }: ModelLists): Finding[] => {
  const isEnabled = (one: ModelConfigRow): boolean =>
    one.enabled && providers.some(({ id, enabled }) => id === one.provider_id && enabled);
  if (models.length === 0 || models.some((one) => one.is_default && isEnabled(one))) return [];
  const detail =
    "There is no default model. New chats use the first enabled model, which may not respond. Choose a default in Administration > Models.";
  return [{ name: "models", status: "warn", detail }];
};
