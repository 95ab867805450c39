// Findings of `slipway doctor` about the object storage for a cluster's uploads.
import { systemClock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import type { Finding } from "./finding.ts";

const WAIT_MS = 3000;

/** Returns no finding when uploads are in the database and belong there. */
export const bucket = async (config: Config & { database_url: string }): Promise<Finding[]> => {
  const name = "uploads";
  // Imported lazily, because a single server does not need it.
  const [{ makeBucket: bucketOf, describeBucketMismatch: strangeBucket }, { keptObjects }] = await Promise.all([
    import("#db/pg/uploads.ts"),
    import("#db/pg/kept-objects.ts"),
  ]);
  const found = bucketOf(config, systemClock);
  try {
    await found?.check();
    // A database that does not respond is reported separately.
    const kept = await keptObjects(config.database_url, { wait_ms: WAIT_MS }).catch(() => []);
    const problem = await strangeBucket(found, kept);
    if (problem !== undefined) return [{ name, status: "wrong", detail: problem }];
  } catch (error) {
    return [{ name, status: "wrong", detail: (error as Error).message }];
  }
  if (!found) return [];
  if (config.s3_endpoint?.protocol === "http:" && !/^(127\.|localhost$|\[::1\]$)/.test(config.s3_endpoint.hostname)) {
    return [{ name, status: "warn", detail: `in ${found.name}, which uploads reach unencrypted` }];
  }
  return [{ name, status: "ok", detail: `in ${found.name}; written, read and removed there` }];
};
