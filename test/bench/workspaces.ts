// Starts many builds in parallel and watches them, over the product's own API. Used by rows-workspaces.ts.
import type { Product } from "./product.ts";

const RANK = ["pending", "starting", "running"];

type WorkspaceHistory = { statuses: string[]; running: boolean };
export type BuildWatchers = AsyncDisposable & { readonly seen: readonly WorkspaceHistory[]; allRunning: Promise<void> };

type Message = { type: string; data: { latest_build: { build_number: number; status: string } } | null };

/** Opens one WebSocket per workspace; resolves when all have received their first state. Counts from the next build on. */
export async function watchBuilds(product: Product, ids: readonly string[]): Promise<BuildWatchers> {
  const all = Promise.withResolvers<void>();
  let left = ids.length;
  const seen: WorkspaceHistory[] = [];
  const sockets: WebSocket[] = [];
  const open = (id: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const url = `${product.url.replace("http", "ws")}/api/v2/workspaces/${id}/watch-ws`;
      const socket = new WebSocket(url, { headers: { "Service-Session-Token": product.adminToken } } as never);
      const mine: WorkspaceHistory = { statuses: [], running: false };
      let first: number | undefined;
      socket.onerror = () => reject(new Error("a watcher was refused"));
      socket.onmessage = ({ data }) => {
        const message = JSON.parse(data as string) as Message;
        if (message.type !== "data" || !message.data) return;
        const { build_number, status } = message.data.latest_build;
        first ??= build_number;
        resolve();
        if (build_number === first) return;
        mine.statuses.push(status);
        if (status !== "running" || mine.running) return;
        mine.running = true;
        left -= 1;
        if (left === 0) all.resolve();
      };
      seen.push(mine);
      sockets.push(socket);
    });
  for (let at = 0; at < ids.length; at += 50) await Promise.all(ids.slice(at, at + 50).map(open));
  return {
    seen,
    allRunning: all.promise,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.close();
    },
  };
}

/** Requests a start of each at the same time; returns how many were accepted. */
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

/** Returns what was observed once all are running, or at the timeout. A status may be skipped, but never arrives after a later one. */
export async function awaitAll(
  { seen, allRunning }: BuildWatchers,
  limit_ms: number,
): Promise<{ saw_running: number; saw_pending: number; out_of_order: number }> {
  await Promise.race([allRunning, Bun.sleep(limit_ms)]);
  const countRegressions = ({ statuses }: WorkspaceHistory): number =>
    statuses.filter((status, i) => RANK.indexOf(status) < RANK.indexOf(statuses[i - 1] ?? "pending")).length;
  return {
    saw_running: seen.filter(({ running }) => running).length,
    saw_pending: seen.filter(({ statuses }) => statuses.includes("pending")).length,
    out_of_order: seen.reduce((sum, one) => sum + countRegressions(one), 0),
  };
}
