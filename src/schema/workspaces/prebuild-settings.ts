// Wire shape of the setting that pauses prebuilt workspaces.
import { type Static, Type as t } from "@sinclair/typebox";
import { namedObject } from "../shape-names.ts";

export const PrebuildSettings = namedObject("PrebuildSettings", {
  reconciliation_paused: t.Boolean({
    description: "Whether creating and removing prebuilt workspaces is paused. Existing ones can still be claimed.",
  }),
});
export type PrebuildSettings = Static<typeof PrebuildSettings>;
