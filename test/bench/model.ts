// The model server of the chat rows (model-source.ts), as a separate process.
import { join } from "node:path";
import { findFreePort } from "./machine.ts";
import { startServer } from "./process.ts";

/** `speak` waits for `streams` open calls, and then answers each with `chunks` chunks. */
export type Model = {
  readonly url: string;
  speak(streams: number, chunks: number, per_s: number): Promise<void>;
};

export const startModel = async (dir: string): Promise<Model & AsyncDisposable> => {
  const port = await findFreePort();
  const program = join(import.meta.dir, "model-source.ts");
  const server = await startServer({
    command: [process.execPath, program, String(port)],
    env: {},
    port,
    readyPath: "/",
    core: undefined,
    logFile: join(dir, "model.log"),
  });
  const post = (path: string, body?: unknown) =>
    fetch(`${server.url}${path}`, { method: "POST", body: JSON.stringify(body ?? {}) });
  return {
    ...server,
    async speak(streams, chunks, per_s) {
      while (Number(await (await post("/waiting")).text()) < streams) await Bun.sleep(20);
      await post("/go", { chunks, per_s });
    },
  };
};
