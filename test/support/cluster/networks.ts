// Network locations for cluster tests: network namespaces joined by a bridge, between which connections can be cut. Needs root and `ip`.
import { needs } from "../needs.ts";

const ip = (...args: string[]): void => {
  const { exitCode, stderr } = Bun.spawnSync(["ip", ...args]);
  if (exitCode !== 0) throw new Error(`ip ${args.join(" ")}: ${stderr.toString().trim()}`);
};

export type NetworkLocation = {
  readonly address: string;
  /** The command prefix that runs a program at this location. */
  readonly through: readonly string[];
};

export type Networks = Disposable & {
  /** The test's own location. */
  readonly here: NetworkLocation;
  /** Adds a location. */
  add(): NetworkLocation;
  /** Drops all packets from `from` to `to`; `both`: also in the other direction. */
  cut(from: NetworkLocation, to: NetworkLocation, options?: { both?: boolean }): void;
  /** Restores all connections. */
  heal(): void;
};

export const makeNetworks = (): Networks => {
  if (!needs.root.found) throw new Error("network namespaces need root");
  // Parallel runs need different numbers.
  const net = 1 + (process.pid % 250);
  // The bridge has a separate namespace, where the machine's firewall rules do not apply.
  const hub = `sln${process.pid}-hub`;
  const veth = `slv${process.pid}`;
  const names: string[] = [];
  const cuts: string[][] = [];
  ip("netns", "add", hub);
  ip("-n", hub, "link", "add", "bridge", "type", "bridge");
  ip("-n", hub, "link", "set", "bridge", "up");
  ip("link", "add", veth, "type", "veth", "peer", "name", "own", "netns", hub);
  ip("-n", hub, "link", "set", "own", "master", "bridge");
  ip("-n", hub, "link", "set", "own", "up");
  ip("addr", "add", `10.213.${net}.1/24`, "dev", veth);
  ip("link", "set", veth, "up");
  return {
    here: { address: `10.213.${net}.1`, through: [] },
    add() {
      const n = names.length + 2;
      const name = `sln${process.pid}-${n}`;
      const [outside, address] = [`place${n}`, `10.213.${net}.${n}`];
      ip("netns", "add", name);
      names.push(name);
      ip("-n", hub, "link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", name);
      ip("-n", hub, "link", "set", outside, "master", "bridge");
      ip("-n", hub, "link", "set", outside, "up");
      ip("-n", name, "addr", "add", `${address}/24`, "dev", "eth0");
      ip("-n", name, "link", "set", "eth0", "up");
      ip("-n", name, "link", "set", "lo", "up");
      return { address, through: ["ip", "netns", "exec", name] };
    },
    cut(from, to, { both = false } = {}) {
      for (const [source, target] of both ? [[from, to] as const, [to, from] as const] : [[from, to] as const]) {
        const name = source.through.at(-1);
        const route = name === undefined ? ["route"] : ["-n", name, "route"];
        ip(...route, "add", "blackhole", `${target.address}/32`);
        cuts.push([...route, "del", "blackhole", `${target.address}/32`]);
      }
    },
    heal() {
      for (const route of cuts.splice(0)) ip(...route);
    },
    [Symbol.dispose]() {
      ip("link", "del", veth);
      for (const name of [...names, hub]) ip("netns", "del", name);
    },
  };
};
