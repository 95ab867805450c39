// Excessive connections: ten thousand idle ones, and two thousand new ones per second (RELIABILITY checks 17 and 18). Other clients are
// answered in the meantime, and no descriptor is left behind.
import type { Socket } from "bun";
import { until } from "#test/support/until.ts";
import { ServerSlot } from "./server.ts";
import { assertNoProblems } from "./server-crash.ts";
import type { Check, CheckOptions } from "./store/store-crash.ts";

const GET = "GET /api/v2/buildinfo HTTP/1.1\r\nHost: 127.0.0.1\r\n";
/** How much longer than on an idle server the slowest of a hundred requests may take. The machine is shared. */
const MAX_SLOWDOWN_MS = 250;
const MAX_BYTES_EACH = 16 * 1024;
/** Connections of the check itself, and files that the server opens in the meantime. */
const OTHER_CONNECTIONS = 16;

const measureP99 = async (url: URL, count = 100): Promise<number> => {
  const times: number[] = [];
  for (let i = 0; i < count; i++) {
    const startedAt = performance.now();
    const response = await fetch(new URL("/api/v2/buildinfo", url));
    await response.text();
    if (!response.ok) throw new Error(`a request was answered ${response.status}`);
    times.push(performance.now() - startedAt);
  }
  return times.sort((a, b) => a - b)[Math.floor(count * 0.99) - 1] ?? 0;
};

/** Opens one connection. `response` resolves with the first response, or with "" if the connection ends before. */
const connect = async (url: URL, request = ""): Promise<{ socket: Socket; response: Promise<string> }> => {
  const { promise: response, resolve } = Promise.withResolvers<string>();
  const socket = await Bun.connect({
    hostname: url.hostname,
    port: Number(url.port),
    socket: { data: (_, data) => resolve(data.toString("latin1")), close: () => resolve(""), error: () => resolve("") },
  });
  if (request !== "") socket.write(request);
  return { socket, response };
};

/** `rounds` thousand connections stay open: half of them have sent nothing, half have been answered once. */
export const checkIdleConnections = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  await using place = await ServerSlot.make();
  const server = await place.start();
  const { url } = place.client;
  await measureP99(url);
  const before = { p99: await measureP99(url), rss: server.rss(), descriptors: server.descriptors() };
  const sockets: Socket[] = [];
  const problems: string[] = [];
  for (let i = 0; i < rounds * 10; i++) {
    const batch = await Promise.all(
      Array.from({ length: 100 }, (_, n) => connect(url, n % 2 === 0 ? "" : `${GET}\r\n`)),
    );
    for (const [n, { response }] of batch.entries()) {
      if (n % 2 === 1 && !(await response).startsWith("HTTP/1.1 200")) problems.push("a request was not answered");
    }
    sockets.push(...batch.map(({ socket }) => socket));
  }
  // The kernel accepts a connection before the server does.
  await until(async () => server.descriptors() - before.descriptors >= sockets.length, { timeoutMs: 5_000 }).catch(
    () => {},
  );
  const openCount = server.descriptors() - before.descriptors;
  const p99 = await measureP99(url);
  const bytesEach = Math.max(0, server.rss() - before.rss) / sockets.length;
  if (openCount < sockets.length) problems.push(`${openCount} of ${sockets.length} connections are open`);
  if (p99 > before.p99 + MAX_SLOWDOWN_MS)
    problems.push(`p99 went from ${before.p99.toFixed(1)} to ${p99.toFixed(1)} ms`);
  if (bytesEach > MAX_BYTES_EACH) problems.push(`${bytesEach.toFixed(0)} bytes for each connection`);
  for (const socket of sockets) socket.end();
  await until(async () => server.descriptors() <= before.descriptors + OTHER_CONNECTIONS).catch(() => {});
  const leftCount = server.descriptors() - before.descriptors;
  if (leftCount > OTHER_CONNECTIONS) problems.push(`${leftCount} descriptors are left`);
  await place.stop();
  assertNoProblems(seed, "idle connections", problems);
  log(`${sockets.length} connections, p99 ${before.p99.toFixed(1)} and ${p99.toFixed(1)} ms`);
  return `${sockets.length} connections at ${(bytesEach / 1024).toFixed(1)} KiB each, p99 of a concurrent request ${p99.toFixed(1)} ms (${before.p99.toFixed(1)} ms without), ${Math.max(0, leftCount)} descriptors left`;
};

const CONNECTIONS_PER_SECOND = 2_000;

/** For `rounds` seconds, 2,000 connections are opened per second, used for one request and closed. */
export const checkNewConnections = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  await using place = await ServerSlot.make();
  const server = await place.start();
  const { url } = place.client;
  const visit = async (): Promise<boolean> => {
    const { socket, response } = await connect(url, `${GET}Connection: close\r\n\r\n`);
    const text = await response;
    socket.end();
    return text.startsWith("HTTP/1.1 200");
  };
  for (let i = 0; i < 10; i++) await Promise.all(Array.from({ length: 100 }, visit));
  await until(async () => server.descriptors() < 100);
  const before = { rss: server.rss(), descriptors: server.descriptors() };
  let opened = 0;
  const visits: Promise<boolean>[] = [];
  const startedAt = performance.now();
  const probes: Promise<number>[] = [];
  while (performance.now() - startedAt < rounds * 1_000) {
    // Opens as many as are due by now, to compensate for pauses of this process.
    const due = Math.floor(((performance.now() - startedAt) / 1_000) * CONNECTIONS_PER_SECOND) - opened;
    for (let i = 0; i < due; i++) visits.push(visit());
    opened += Math.max(0, due);
    if (probes.length < (performance.now() - startedAt) / 1_000) probes.push(measureP99(url, 10));
    await Bun.sleep(5);
  }
  const failedCount = (await Promise.all(visits)).filter((ok) => !ok).length;
  const seconds = (performance.now() - startedAt) / 1_000;
  const slowestMs = Math.max(...(await Promise.all(probes)));
  await until(async () => server.descriptors() <= before.descriptors + OTHER_CONNECTIONS).catch(() => {});
  const [leftCount, grownMib] = [server.descriptors() - before.descriptors, (server.rss() - before.rss) / 2 ** 20];
  const problems: string[] = [];
  if (failedCount > 0) problems.push(`${failedCount} of ${opened} were not answered`);
  if (opened / seconds < CONNECTIONS_PER_SECOND * 0.8)
    problems.push(`only ${(opened / seconds).toFixed(0)} a second were managed`);
  if (leftCount > OTHER_CONNECTIONS) problems.push(`${leftCount} descriptors are left`);
  if (grownMib > 100) problems.push(`memory grew by ${grownMib.toFixed(0)} MiB`);
  await place.stop();
  assertNoProblems(seed, "new connections", problems);
  log(`${opened} connections in ${seconds.toFixed(1)} s`);
  return `${opened} connections, ${(opened / seconds).toFixed(0)} a second, all answered; slowest of other requests ${slowestMs.toFixed(0)} ms, ${Math.max(0, leftCount)} descriptors left, memory ${grownMib.toFixed(0)} MiB more`;
};

export const checks: readonly Check[] = [
  { name: "server: idle connections", run: checkIdleConnections },
  { name: "server: new connections", run: checkNewConnections },
];
