// Wire shapes of port shares (specification "Port sharing", facts/platform 3.5).
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";
import { strictObject } from "../strict.ts";

/** From the most restrictive to the most open. */
export const SHARE_LEVELS = ["owner", "organization", "authenticated", "public"] as const;
export type ShareLevel = (typeof SHARE_LEVELS)[number];

/** Returns whether `level` lets in more people than `max`. */
export const isMoreOpen = (level: ShareLevel, max: ShareLevel): boolean =>
  SHARE_LEVELS.indexOf(level) > SHARE_LEVELS.indexOf(max);

/** Returns the level at which a port or app is shared: the requested one, but no more open than the template allows. */
export const getEffectiveLevel = (requested: ShareLevel, max: ShareLevel): ShareLevel =>
  isMoreOpen(requested, max) ? max : requested;

const agent_name = t.String({ description: "The name of an agent of the latest build." });
const port = t.Integer({
  minimum: 9,
  maximum: 65_535,
  description: "The port that a program in the workspace listens on.",
});
const protocol = named("PortProtocol", oneOf(["http", "https"], "The protocol of the port."));
export const PortShareLevel = named(
  "PortShareLevel",
  oneOf(
    SHARE_LEVELS,
    "Who can open the port: the owner, members of the organization, all signed-in users, or everyone.",
  ),
);

export const PortShare = namedObject("PortShare", {
  workspace_id: t.String({ format: "uuid" }),
  agent_name,
  port,
  share_level: PortShareLevel,
  protocol,
});
export type PortShare = Static<typeof PortShare>;

export const PortShares = namedObject("PortShares", {
  shares: t.Array(PortShare, { description: "The shared ports, sorted by port and agent." }),
});

/** Body of POST: replaces the share of the same agent and port. */
export const UpsertPortShare = named(
  "UpsertPortShare",
  strictObject({ agent_name, port, protocol, share_level: PortShareLevel }),
);
export type UpsertPortShare = Static<typeof UpsertPortShare>;

export const DeletePortShare = namedObject("DeletePortShare", {
  agent_name,
  port: t.Integer({ description: "The shared port." }),
});
