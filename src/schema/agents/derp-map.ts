// Wire shapes of the relay map, and of the information with which a client reaches an agent (specification "Agent connection info"). Names
// follow the specification; parsers of these maps ignore letter case.
import { type Static, Type as t } from "@sinclair/typebox";
import { namedObject } from "../shape-names.ts";

const DerpNode = namedObject("DerpNode", {
  canPort80: t.Boolean({ description: "Whether the node also responds on port 80." }),
  certName: t.String({
    description: "The host name in the node's certificate; empty if it is the same as `hostName`.",
  }),
  derpport: t.Integer({ description: "The port of the relay." }),
  forceHTTP: t.Boolean({ description: "Whether clients connect without TLS." }),
  hostName: t.String({
    description: "The node's host name. Clients replace it with the host they use to reach the server.",
  }),
  insecureForTests: t.Boolean({ description: "Always false." }),
  ipv4: t.String({ description: "The node's IPv4 address. If empty, clients resolve the host name." }),
  ipv6: t.String({ description: "The node's IPv6 address. If empty, clients resolve the host name." }),
  name: t.String({ description: "The node's name, unique among all nodes." }),
  regionID: t.Integer({ description: "The ID of the node's region." }),
  stunonly: t.Boolean({ description: "Whether the node is only a STUN server and not a relay." }),
  stunport: t.Integer({ description: "The port of the STUN server; -1 if the node has none." }),
  stuntestIP: t.String({ description: "Always empty." }),
});

const DerpRegion = namedObject("DerpRegion", {
  avoid: t.Boolean({ description: "Whether clients should avoid this region if possible." }),
  embeddedRelay: t.Boolean({ description: "Whether this is the server's embedded relay." }),
  regionCode: t.String({ description: "The short name of the region." }),
  regionID: t.Integer({ description: "The ID of the region." }),
  regionName: t.String({ description: "The display name of the region." }),
  nodes: t.Array(DerpNode, { description: "The relays in the region." }),
});

export const DerpMap = namedObject("DerpMap", {
  homeParams: t.Object(
    {
      regionScore: t.Record(t.String(), t.Number(), {
        description: "Multipliers for the measured latency of regions, by region ID.",
      }),
    },
    { description: "How clients choose the region through which others reach them." },
  ),
  omitDefaultRegions: t.Boolean({ description: "Whether clients use only the regions listed here." }),
  regions: t.Record(t.String(), DerpRegion, { description: "The regions, by ID." }),
});
export type DerpMap = Static<typeof DerpMap>;

export const AgentConnectionInfo = namedObject("AgentConnectionInfo", {
  derp_force_websockets: t.Boolean({ description: "Whether clients connect to relays only over WebSockets." }),
  derp_map: { ...DerpMap, description: "The relays through which clients reach the agent." },
  disable_direct_connections: t.Boolean({ description: "Whether all traffic goes through relays." }),
  hostname_suffix: t.String({ description: "The suffix of workspace names in the private network." }),
});
export type AgentConnectionInfo = Static<typeof AgentConnectionInfo>;
