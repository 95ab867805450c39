// Whether the restarted service gets ready, as the version that it should be.
import type { Config } from "#base/config.ts";
import type { VerbInput } from "../../verb.ts";
import { askOwnServer } from "../health.ts";
import { hasGivenUp } from "./service.ts";

/** A large database may take long to change. */
const PATIENCE_MS = 300_000;
const PAUSE_MS = 250;

export type Wanted = {
  readonly input: VerbInput;
  readonly config: Config;
  readonly version: string;
  readonly unit: string;
  /** How often systemd had started the unit again by then. */
  readonly before: number;
};

/** Returns undefined once the server is ready, else why it will not be. */
export const comesUp = async ({ input, config, version, unit, before }: Wanted): Promise<string | undefined> => {
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
