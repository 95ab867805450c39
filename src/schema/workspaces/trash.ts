// Wire shapes of the trash: deleted workspaces whose files still exist.
import { type Static, Type as t } from "@sinclair/typebox";
import { time, uuid } from "../fields.ts";
import { named, namedObject } from "../shape-names.ts";
import { strictObject } from "../strict.ts";
import { lineText } from "../text.ts";

export const TrashedWorkspace = namedObject("TrashedWorkspace", {
  id: uuid(),
  name: t.String({ description: "The former name of the workspace. Another workspace may have it now." }),
  owner_id: uuid(),
  owner_name: t.String({ description: "The username of the workspace's owner." }),
  template_id: uuid(),
  template_name: t.String(),
  deleted_at: time(),
  kept_until: time("When the workspace's files are deleted permanently."),
  bytes: t.Integer({ minimum: 0, description: "The size of the workspace's files and snapshots in bytes." }),
});

export const Trash = namedObject("Trash", {
  workspaces: t.Array(TrashedWorkspace, { description: "The deleted workspaces, most recently deleted first." }),
  bytes: t.Integer({ minimum: 0, description: "The total size of the deleted workspaces in bytes." }),
});
export type Trash = Static<typeof Trash>;

export const RestoreWorkspace = named(
  "RestoreWorkspace",
  strictObject({
    name: t.Optional(
      lineText({
        description: "The new name of the workspace; default: its former name, with a number if that is taken.",
        maxLength: 32,
      }),
    ),
  }),
);
export type RestoreWorkspace = Static<typeof RestoreWorkspace>;
