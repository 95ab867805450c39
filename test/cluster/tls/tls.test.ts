// Spares and nodes with TLS: which node a spare forwards its clients' requests to.
import { afterAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { systemClock } from "#base/clock.ts";
import { Forwarder } from "#src/cluster/forwarder.ts";
import { isNode, parseCertificate } from "#src/cluster/peer.ts";
import { makeCertificate } from "#test/cli/certificate.ts";
import { tempDirectory } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";

const temp = tempDirectory();
afterAll(() => temp[Symbol.dispose]());

const createCertificate = async (name: string, host: string) => {
  const { cert, key } = await makeCertificate(temp.path, name, `DNS:${host},IP:127.0.0.1`);
  return { cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") };
};

test("[CL-11] a spare forwards to a node with its own certificate, and to none with another", async () => {
  const ours = await createCertificate("ours", "slipway.example.com");
  const theirs = await createCertificate("theirs", "slipway.example.com");
  let requestCount = 0;
  const respond = (): Response => {
    requestCount += 1;
    return new Response("from the active node");
  };
  const node = Bun.serve({ hostname: "127.0.0.1", port: 0, tls: ours, fetch: respond });
  const outsider = Bun.serve({ hostname: "127.0.0.1", port: 0, tls: theirs, fetch: respond });
  let leader = node.port;
  let leaderLookups = 0;
  const forwarder = new Forwarder({
    hostname: "127.0.0.1",
    port: 0,
    clock: systemClock,
    max_connections: 10,
    isOurs: () => true,
    token: "secret",
    tls: ours,
    leader: () => {
      leaderLookups += 1;
      return `127.0.0.1:${leader}`;
    },
    own: () => "",
    state: () => ({ node: "spare", lease: "elsewhere", database: "answers", standby: "connected" }),
  });
  try {
    const request = () =>
      fetch(`https://127.0.0.1:${forwarder.port}/`, { tls: { rejectUnauthorized: false }, keepalive: false });
    expect(await (await request()).text()).toBe("from the active node");
    leader = outsider.port;
    leaderLookups = 0;
    const pendingResponse = request();
    // It has tried the wrong node more than once, and continues to look for the leader.
    await until(() => leaderLookups > 3);
    leader = node.port;
    expect(await (await pendingResponse).text()).toBe("from the active node");
    expect(requestCount).toBe(2);
  } finally {
    forwarder.end();
    await node.stop(true);
    await outsider.stop(true);
  }
});

test("[CL-11] a renewed certificate is accepted if an authority has issued it for the same name", async () => {
  const ownCertificate = parseCertificate((await createCertificate("own", "slipway.example.com")).cert);
  const renewed = parseCertificate((await createCertificate("renewed", "slipway.example.com")).cert);
  const otherCertificate = parseCertificate((await createCertificate("other", "elsewhere.example.com")).cert);
  expect(isNode(ownCertificate, false, ownCertificate)).toBe(true);
  expect(isNode(renewed, true, ownCertificate)).toBe(true);
  expect(isNode(renewed, false, ownCertificate)).toBe(false);
  expect(isNode(otherCertificate, true, ownCertificate)).toBe(false);
  expect(isNode(undefined, true, ownCertificate)).toBe(false);
});
