// The relay map an agent gets: one region, this server itself (facts/wire 2.5). `home_params` must always be there, an agent reads it
// unchecked (facts/wire 1.5, trap 1).
import type { DerpMapInit } from "#src/wire/agent-api.ts";

const REGION = 999;

/** Agents put the host, port and scheme they themselves use in place of ours, so one map fits all. */
export const derpMap = (accessUrl: URL): DerpMapInit => {
  const plain = accessUrl.protocol === "http:";
  return {
    homeParams: { regionScore: {} },
    regions: {
      [REGION]: {
        regionId: BigInt(REGION),
        embeddedRelay: true,
        regionCode: "coder",
        regionName: "Embedded Relay",
        avoid: false,
        nodes: [
          {
            name: `${REGION}b`,
            regionId: BigInt(REGION),
            hostName: accessUrl.hostname,
            derpPort: Number(accessUrl.port || (plain ? 80 : 443)),
            // 0 would mean the usual port.
            stunPort: -1,
            forceHttp: plain,
          },
        ],
      },
    },
  };
};
