// The relay map: one region, this server itself (facts/wire 2.5). Peers replace the host, port and scheme with those they use themselves,
// so one map fits all. Used by manifests, the Tailnet service and the routes that show it. [TL-15]
import type { DerpMapInit } from "#src/wire/index.ts";

export const RELAY_REGION = 999;
const REGION_CODE = "coder";
const REGION_NAME = "Coder Embedded Relay";
const NODE_NAME = `${RELAY_REGION}b`;
/** 0 would mean the default port; this server has no STUN. */
const STUN_DISABLED = -1;

/** Sent to everyone with the map: all traffic goes through this relay, over WebSockets. */
export const RELAY_ONLY = { derp_force_websockets: true, disable_direct_connections: true } as const;

/** Returns the region's name; a region that is not in our map is shown by its number. */
export const getRegionName = (region: number): string => (region === RELAY_REGION ? REGION_NAME : `Unnamed ${region}`);

/** Returns the map for peers. `home_params` is required: an agent reads it without a check (facts/wire 1.5, trap 1). */
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

/** Returns the map as JSON, with the specification's names. */
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
