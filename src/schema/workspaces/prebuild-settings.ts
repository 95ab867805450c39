// Whether workspaces are kept ready at all.
import { type Static, Type as t } from "@sinclair/typebox";
import { namedObject } from "../named.ts";

export const PrebuildSettings = namedObject("PrebuildSettings", {
  reconciliation_paused: t.Boolean({
    description: "No workspace is made or removed to be kept ready. What is ready can be claimed all the same.",
  }),
});
export type PrebuildSettings = Static<typeof PrebuildSettings>;
