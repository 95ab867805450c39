// Wire shape of a file uploaded to a workspace.
import { type Static, Type as t } from "@sinclair/typebox";
import { namedObject } from "../shape-names.ts";

export const UploadedAgentFile = namedObject("UploadedAgentFile", {
  path: t.String({ description: "The path of the file in the workspace." }),
});
export type UploadedAgentFile = Static<typeof UploadedAgentFile>;
