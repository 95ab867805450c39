// Checks whether the restarted service becomes ready with the expected version.
import type { Config } from "#base/config.ts";
import type { VerbInput } from "../../verb.ts";
import { askOwnServer } from "../health.ts";
import { hasGivenUp } from "./service.ts";

/** Migrating a large database may take long. */
const PATIENCE_MS = 300_000;
const PAUSE_MS = 250;

export type Wanted = {
  readonly input: VerbInput;
  readonly config: Config;
  readonly version: string;
  readonly unit: string;
  /** The unit's restart count before the restart. */
  readonly before: number;
};

/** Returns undefined once the server is ready, otherwise the reason for the failure. */
export const waitUntilReady = async ({ input, config, version, unit, before }: Wanted): Promise<string | undefined> => {
  const { clock, signal } = input;
  const begun = clock.now();
  for (;;) {
    if (signal.aborted) return "interrupted";
    if ((await askOwnServer(config, "/readyz", signal)) !== undefined) {
      const running = (await askOwnServer(config, "/api/v2/buildinfo", signal))?.version;
      return running?.endsWith(`slipway.${version}`) ? undefined : `the server reports version ${running}`;
    }
    if (await hasGivenUp(unit, before)) return `its service failed; see "journalctl -u ${unit}"`;
    if (clock.now() - begun > PATIENCE_MS) return `it was not ready after ${PATIENCE_MS / 60_000} minutes`;
    await new Promise<void>((done) => void clock.after(PAUSE_MS, done));
  }
};
