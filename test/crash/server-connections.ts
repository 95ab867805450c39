// Excessive connections: ten thousand idle ones, and two thousand new ones per second (RELIABILITY checks 17 and 18). Other clients are
// answered in the meantime, and nothing is left behind.
import type { Socket } from "bun";
import { until } from "#test/support/until.ts";
import { ServerPlace } from "./server.ts";
import { assertNoProblems } from "./server-crash.ts";
import type { Check, CheckOptions } from "./store/store-crash.ts";

const GET = "GET /api/v2/buildinfo HTTP/1.1\r\nHost: 127.0.0.1\r\n";
/** How much later than on an idle server the slowest of a hundred requests may be answered. The machine is shared. */
const MAX_SLOWDOWN_MS = 250;
const BYTES_EACH = 16 * 1024;
/** Connections of a check of the server, and what it opens for itself in the meantime. */
const OTHER_CONNECTIONS = 16;

const probe = async (url: URL, count = 100): Promise<number> => {
  const times: number[] = [];
  for (let i = 0; i < count; i++) {
    const began = performance.now();
    const response = await fetch(new URL("/api/v2/buildinfo", url));
    await response.text();
    if (!response.ok) throw new Error(`a request was answered ${response.status}`);
    times.push(performance.now() - began);
  }
  return times.sort((a, b) => a - b)[Math.floor(count * 0.99) - 1] ?? 0;
};

/** Opens one connection; `answered` resolves with its first response, or with "" if it ends first. */
const connect = async (url: URL, request = ""): Promise<{ socket: Socket; answered: Promise<string> }> => {
  const { promise: answered, resolve } = Promise.withResolvers<string>();
  const socket = await Bun.connect({
    hostname: url.hostname,
    port: Number(url.port),
    socket: { data: (_, data) => resolve(data.toString("latin1")), close: () => resolve(""), error: () => resolve("") },
  });
  if (request !== "") socket.write(request);
  return { socket, answered };
};

/** `rounds` thousand connections stay open: half have sent nothing, half have been answered once. */
export const checkIdleConnections = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  await using place = await ServerPlace.make();
  const server = await place.start();
  const { url } = place.client;
  await probe(url);
  const before = { p99: await probe(url), rss: server.rss(), descriptors: server.descriptors() };
  const sockets: Socket[] = [];
  const problems: string[] = [];
  for (let i = 0; i < rounds * 10; i++) {
    const some = await Promise.all(
      Array.from({ length: 100 }, (_, n) => connect(url, n % 2 === 0 ? "" : `${GET}\r\n`)),
    );
    for (const [n, { answered }] of some.entries()) {
      if (n % 2 === 1 && !(await answered).startsWith("HTTP/1.1 200")) problems.push("a request was not answered");
    }
    sockets.push(...some.map(({ socket }) => socket));
  }
  // The kernel accepts a connection before the server does.
  await until(async () => server.descriptors() - before.descriptors >= sockets.length, { patience: 5_000 }).catch(
    () => {},
  );
  const there = server.descriptors() - before.descriptors;
  const p99 = await probe(url);
  const each = Math.max(0, server.rss() - before.rss) / sockets.length;
  if (there < sockets.length) problems.push(`${there} of ${sockets.length} connections are open`);
  if (p99 > before.p99 + MAX_SLOWDOWN_MS)
    problems.push(`p99 went from ${before.p99.toFixed(1)} to ${p99.toFixed(1)} ms`);
  if (each > BYTES_EACH) problems.push(`${each.toFixed(0)} bytes for each connection`);
  for (const socket of sockets) socket.end();
  await until(async () => server.descriptors() <= before.descriptors + OTHER_CONNECTIONS).catch(() => {});
  const left = server.descriptors() - before.descriptors;
  if (left > OTHER_CONNECTIONS) problems.push(`${left} descriptors are left`);
  await place.stop();
  assertNoProblems(seed, "idle connections", problems);
  log(`${sockets.length} connections, p99 ${before.p99.toFixed(1)} and ${p99.toFixed(1)} ms`);
  return `${sockets.length} connections at ${(each / 1024).toFixed(1)} KiB each, p99 of a concurrent request ${p99.toFixed(1)} ms (${before.p99.toFixed(1)} ms without), ${Math.max(0, left)} descriptors left`;
};

const A_SECOND = 2_000;

/** For `rounds` seconds, 2,000 connections are opened per second, used for one request and closed. */
export const checkNewConnections = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  await using place = await ServerPlace.make();
  const server = await place.start();
  const { url } = place.client;
  const visit = async (): Promise<boolean> => {
    const { socket, answered } = await connect(url, `${GET}Connection: close\r\n\r\n`);
    const text = await answered;
    socket.end();
    return text.startsWith("HTTP/1.1 200");
  };
  for (let i = 0; i < 10; i++) await Promise.all(Array.from({ length: 100 }, visit));
  await until(async () => server.descriptors() < 100);
  const before = { rss: server.rss(), descriptors: server.descriptors() };
  let opened = 0;
  const visits: Promise<boolean>[] = [];
  const began = performance.now();
  const slowest: Promise<number>[] = [];
  while (performance.now() - began < rounds * 1_000) {
    // As many as are due by now, which compensates for pauses of this process.
    const due = Math.floor(((performance.now() - began) / 1_000) * A_SECOND) - opened;
    for (let i = 0; i < due; i++) visits.push(visit());
    opened += Math.max(0, due);
    if (slowest.length < (performance.now() - began) / 1_000) slowest.push(probe(url, 10));
    await Bun.sleep(5);
  }
  const refused = (await Promise.all(visits)).filter((ok) => !ok).length;
  const seconds = (performance.now() - began) / 1_000;
  const worst = Math.max(...(await Promise.all(slowest)));
  await until(async () => server.descriptors() <= before.descriptors + OTHER_CONNECTIONS).catch(() => {});
  const [left, grown] = [server.descriptors() - before.descriptors, (server.rss() - before.rss) / 2 ** 20];
  const problems: string[] = [];
  if (refused > 0) problems.push(`${refused} of ${opened} were not answered`);
  if (opened / seconds < A_SECOND * 0.8) problems.push(`only ${(opened / seconds).toFixed(0)} a second were managed`);
  if (left > OTHER_CONNECTIONS) problems.push(`${left} descriptors are left`);
  if (grown > 100) problems.push(`memory grew by ${grown.toFixed(0)} MiB`);
  await place.stop();
  assertNoProblems(seed, "new connections", problems);
  log(`${opened} connections in ${seconds.toFixed(1)} s`);
  return `${opened} connections, ${(opened / seconds).toFixed(0)} a second, all answered; slowest of other requests ${worst.toFixed(0)} ms, ${Math.max(0, left)} descriptors left, memory ${grown.toFixed(0)} MiB more`;
};

export const checks: readonly Check[] = [
  { name: "server: idle connections", run: checkIdleConnections },
  { name: "server: new connections", run: checkNewConnections },
];
