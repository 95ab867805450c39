// Wire shapes of the trash: deleted workspaces whose files still exist.
import { type Static, Type as t } from "@sinclair/typebox";
import { time, uuid } from "../fields.ts";
import { named, namedObject } from "../shape-names.ts";
import { strictObject } from "../strict.ts";
import { lineText } from "../text.ts";

export const TrashedWorkspace = namedObject("TrashedWorkspace", {
  id: uuid(),
  name: t.String({ description: "Its former name; another workspace may have it now." }),
  owner_id: uuid(),
  owner_name: t.String(),
  template_id: uuid(),
  template_name: t.String(),
  deleted_at: time(),
  kept_until: time("Its files are removed then."),
  bytes: t.Integer({ minimum: 0, description: "Size of its files and snapshots." }),
});

export const Trash = namedObject("Trash", {
  workspaces: t.Array(TrashedWorkspace, { description: "Most recently deleted first." }),
  bytes: t.Integer({ minimum: 0, description: "Size of all of them." }),
});
export type Trash = Static<typeof Trash>;

export const RestoreWorkspace = named(
  "RestoreWorkspace",
  strictObject({
    name: t.Optional(
      lineText({ description: "Default: its own name, with a number if that is taken.", maxLength: 32 }),
    ),
  }),
);
export type RestoreWorkspace = Static<typeof RestoreWorkspace>;
