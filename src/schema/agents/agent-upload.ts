// A file that was given to a workspace.
import { type Static, Type as t } from "@sinclair/typebox";

export const UploadedAgentFile = t.Object({ path: t.String({ description: "Where it is in the workspace." }) });
export type UploadedAgentFile = Static<typeof UploadedAgentFile>;
