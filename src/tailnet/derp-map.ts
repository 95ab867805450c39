// The relay map, with one region, which is this server (facts/wire 2.5). Peers replace its host, port and scheme with those by which they
// reach the server, so all peers get the same map. Used by manifests, the Tailnet service and the routes that return it. [TL-15]
import type { DerpMapInit } from "#src/wire/index.ts";

export const RELAY_REGION = 999;
const REGION_CODE = "coder";
const REGION_NAME = "Coder Embedded Relay";
const NODE_NAME = `${RELAY_REGION}b`;
/** This server has no STUN. 0 would mean the default port. */
const STUN_DISABLED = -1;

/** Settings sent along with the map: all traffic goes through this relay, over WebSockets. */
export const RELAY_ONLY = { derp_force_websockets: true, disable_direct_connections: true } as const;

/** Returns a region's name; its number for a region that is not in this map. */
export const getRegionName = (region: number): string => (region === RELAY_REGION ? REGION_NAME : `Unnamed ${region}`);

/** Returns the map for peers. `homeParams` is required, because agents read it without a check (facts/wire 1.5, trap 1). */
export const buildDerpMap = (accessUrl: URL): DerpMapInit => ({
  homeParams: { regionScore: {} },
  regions: {
    [RELAY_REGION]: {
      regionId: BigInt(RELAY_REGION),
      embeddedRelay: true,
      regionCode: REGION_CODE,
      regionName: REGION_NAME,
      avoid: false,
      nodes: [
        {
          name: NODE_NAME,
          regionId: BigInt(RELAY_REGION),
          hostName: getHost(accessUrl),
          derpPort: getPort(accessUrl),
          stunPort: STUN_DISABLED,
          forceHttp: isPlain(accessUrl),
        },
      ],
    },
  },
});

/** Returns the map for the API, with the specification's member names. */
export const buildDerpMapJson = (accessUrl: URL) => ({
  homeParams: { regionScore: {} },
  omitDefaultRegions: true,
  regions: {
    [RELAY_REGION]: {
      avoid: false,
      embeddedRelay: true,
      regionCode: REGION_CODE,
      regionID: RELAY_REGION,
      regionName: REGION_NAME,
      nodes: [
        {
          canPort80: false,
          certName: "",
          derpport: getPort(accessUrl),
          forceHTTP: isPlain(accessUrl),
          hostName: getHost(accessUrl),
          insecureForTests: false,
          ipv4: "",
          ipv6: "",
          name: NODE_NAME,
          regionID: RELAY_REGION,
          stunonly: false,
          stunport: STUN_DISABLED,
          stuntestIP: "",
        },
      ],
    },
  },
});

const isPlain = (url: URL): boolean => url.protocol === "http:";
const getPort = (url: URL): number => Number(url.port || (isPlain(url) ? 80 : 443));
/** Returns the host without the brackets of an IPv6 address. */
const getHost = (url: URL): string => url.hostname.replace(/^\[|\]$/g, "");
