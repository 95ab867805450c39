// Wire shapes of the relay map and of what a client needs to reach an agent (specification "Agent connection info"). Names follow the
// specification; parsers of such maps ignore letter case.
import { type Static, Type as t } from "@sinclair/typebox";
import { namedObject } from "../shape-names.ts";

const DerpNode = namedObject("DerpNode", {
  canPort80: t.Boolean({ description: "Whether it also responds on port 80." }),
  certName: t.String({ description: "Name in its certificate; empty: the host name." }),
  derpport: t.Integer({ description: "Port of the relay." }),
  forceHTTP: t.Boolean({ description: "True when it is reached without TLS." }),
  hostName: t.String({ description: "Its host; clients replace it with the host they use themselves." }),
  insecureForTests: t.Boolean({ description: "Always false." }),
  ipv4: t.String({ description: "Empty: looked up by name." }),
  ipv6: t.String({ description: "Empty: looked up by name." }),
  name: t.String({ description: "Unique among all nodes." }),
  regionID: t.Integer({ description: "The region it belongs to." }),
  stunonly: t.Boolean({ description: "Whether it is only a STUN server and not a relay." }),
  stunport: t.Integer({ description: "-1 if it has none." }),
  stuntestIP: t.String({ description: "Always empty." }),
});

const DerpRegion = namedObject("DerpRegion", {
  avoid: t.Boolean({ description: "Whether clients should avoid this region if possible." }),
  embeddedRelay: t.Boolean({ description: "True for the relay of this server." }),
  regionCode: t.String({ description: "Short name." }),
  regionID: t.Integer({ description: "Number of the region." }),
  regionName: t.String({ description: "Display name." }),
  nodes: t.Array(DerpNode, { description: "Its relays." }),
});

export const DerpMap = namedObject("DerpMap", {
  homeParams: t.Object({
    regionScore: t.Record(t.String(), t.Number(), { description: "Factors for the latency of regions, by number." }),
  }),
  omitDefaultRegions: t.Boolean({ description: "True: only the regions listed here." }),
  regions: t.Record(t.String(), DerpRegion, { description: "Regions by number." }),
});
export type DerpMap = Static<typeof DerpMap>;

export const AgentConnectionInfo = namedObject("AgentConnectionInfo", {
  derp_force_websockets: t.Boolean({ description: "Whether relays are reached over WebSockets only." }),
  derp_map: DerpMap,
  disable_direct_connections: t.Boolean({ description: "Whether everything goes through relays." }),
  hostname_suffix: t.String({ description: "The suffix of workspace names in the private network." }),
});
export type AgentConnectionInfo = Static<typeof AgentConnectionInfo>;
