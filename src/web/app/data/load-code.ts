// Loads parts of the app's code when they are first needed. Browsers send a lost request again when the same code is imported again.

const MIN_RETRY_MS = 500;
const MAX_RETRY_MS = 8_000;
/** About 15 seconds, enough for a server restart. */
const MAX_TRIES = 6;

/** Returns the module that `load` imports. Retries with increasing delays, and rejects with the last error. */
export const loadCode = async <M>(load: () => Promise<M>, maxTries = MAX_TRIES): Promise<M> => {
  for (let tries = 1, delayMs = MIN_RETRY_MS; ; tries++, delayMs = Math.min(2 * delayMs, MAX_RETRY_MS)) {
    try {
      return await load();
    } catch (error) {
      if (tries >= maxTries) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, delayMs));
  }
};
