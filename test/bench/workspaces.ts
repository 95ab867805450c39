// Starts many builds in parallel and watches them, over the product's API. Used by rows-workspaces.ts.
import type { Product } from "./product.ts";

const STATUS_ORDER = ["pending", "starting", "running"];

type WorkspaceHistory = { statuses: string[]; hasRun: boolean };
export type BuildWatchers = AsyncDisposable & {
  readonly histories: readonly WorkspaceHistory[];
  allRunning: Promise<void>;
};

type Message = { type: string; data: { latest_build: { build_number: number; status: string } } | null };

/** Opens one WebSocket per workspace. Resolves when all have received their first state. Records statuses from the next build on. */
export async function watchBuilds(product: Product, ids: readonly string[]): Promise<BuildWatchers> {
  const allRunning = Promise.withResolvers<void>();
  let remaining = ids.length;
  const histories: WorkspaceHistory[] = [];
  const sockets: WebSocket[] = [];
  const open = (id: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const url = `${product.url.replace("http", "ws")}/api/v2/workspaces/${id}/watch-ws`;
      const socket = new WebSocket(url, { headers: { "Service-Session-Token": product.adminToken } } as never);
      const history: WorkspaceHistory = { statuses: [], hasRun: false };
      let initialBuild: number | undefined;
      socket.onerror = () => reject(new Error("a watcher was rejected"));
      socket.onmessage = ({ data }) => {
        const message = JSON.parse(data as string) as Message;
        if (message.type !== "data" || !message.data) return;
        const { build_number, status } = message.data.latest_build;
        initialBuild ??= build_number;
        resolve();
        if (build_number === initialBuild) return;
        history.statuses.push(status);
        if (status !== "running" || history.hasRun) return;
        history.hasRun = true;
        remaining -= 1;
        if (remaining === 0) allRunning.resolve();
      };
      histories.push(history);
      sockets.push(socket);
    });
  for (let start = 0; start < ids.length; start += 50) await Promise.all(ids.slice(start, start + 50).map(open));
  return {
    histories,
    allRunning: allRunning.promise,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.close();
    },
  };
}

/** Requests a start of each workspace at the same time. Returns how many were accepted. */
export async function makeBuilds(product: Product, ids: readonly string[]): Promise<number> {
  const answers = await Promise.all(
    ids.map((id) =>
      fetch(`${product.url}/api/v2/workspaces/${id}/builds`, {
        method: "POST",
        headers: { "content-type": "application/json", "Service-Session-Token": product.adminToken },
        body: JSON.stringify({ transition: "start" }),
      }),
    ),
  );
  await Promise.all(answers.map((answer) => answer.text()));
  return answers.filter(({ ok }) => ok).length;
}

/**
 * Returns what the watchers saw until all builds were running, or until the timeout. A status may be skipped, but none arrives after a
 * later one.
 */
export async function awaitAll(
  { histories, allRunning }: BuildWatchers,
  timeoutMs: number,
): Promise<{ saw_running: number; saw_pending: number; out_of_order: number }> {
  await Promise.race([allRunning, Bun.sleep(timeoutMs)]);
  const countRegressions = ({ statuses }: WorkspaceHistory): number =>
    statuses.filter((status, i) => STATUS_ORDER.indexOf(status) < STATUS_ORDER.indexOf(statuses[i - 1] ?? "pending"))
      .length;
  return {
    saw_running: histories.filter(({ hasRun }) => hasRun).length,
    saw_pending: histories.filter(({ statuses }) => statuses.includes("pending")).length,
    out_of_order: histories.reduce((sum, history) => sum + countRegressions(history), 0),
  };
}
