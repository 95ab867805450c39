// The short form of the tests of a server and its disk; `bun run torture` has the long one.
import { expect, test } from "bun:test";
import { needs, testNeeding } from "#test/support/needs.ts";
import { serverFaults } from "../server-faults.ts";
import { serverFlush } from "../server-flush.ts";
import { parseResponses } from "../server-trace.ts";
import { powerSkipReason } from "../store/store-power.ts";

const SEED = Number(Bun.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);
const quiet = { seed: SEED, log: () => {} };

const strace = { found: powerSkipReason() === "", reason: powerSkipReason(), file: "" };

testNeeding(
  [strace],
  "[CR-7] every change is flushed before its response, for single calls and for groups",
  async () => {
    expect(await serverFlush({ ...quiet, rounds: 1 })).toContain("each after its flush");
  },
);

test("[CR-7] a response before the flush would be detected", () => {
  const wal = "/srv/data/slipway.db-wal";
  const [socket, flags] = ["10<TCP:[127.0.0.1:1->127.0.0.1:2]>", "MSG_DONTWAIT, NULL, 0) = 9"];
  const trace = [
    `7 recvfrom(${socket}, "PATCH /one HTTP/1.1", 99, MSG_DONTWAIT, NULL, NULL) = 9`,
    `7 pwrite64(4<${wal}>, "x", 1, 0) = 1`,
    `7 fsync(4<${wal}> <unfinished ...>`,
    `7 <... fsync resumed>) = 0`,
    `7 sendto(${socket}, "HTTP/1.1 200 OK", 9, ${flags}`,
    // Another thread's call came in between. If the request were lost here, its response would be lost too, and the trace would be useless.
    "7 recvfrom(10<TCP:[127.0.0.1:1->127.0.0.1:2]>,  <unfinished ...>",
    "8 fsync(5</srv/data/slipway.db>) = 0",
    '7 <... recvfrom resumed>"PATCH /two HTTP/1.1", 99, MSG_DONTWAIT, NULL, NULL) = 9',
    `7 pwrite64(4<${wal}>, "x", 1, 0) = 1`,
    `7 sendto(${socket}, "HTTP/1.1 200 OK", 9, ${flags}`,
    `7 fsync(4<${wal}>) = 0`,
  ].join("\n");
  expect(parseResponses(trace).map(({ request, flushes, unflushed }) => [request, flushes, unflushed])).toEqual([
    ["PATCH /one", 1, 0],
    ["PATCH /two", 0, 1],
  ]);
});

testNeeding(
  [needs.cc],
  `[CR-8] [CR-9] on a failing disk, a server stops or rejects writes, says so, and loses nothing that it acknowledged (seed ${SEED})`,
  async () => {
    expect(await serverFaults({ ...quiet, rounds: 1 })).toContain("none lost");
  },
);
