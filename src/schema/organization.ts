// Wire shapes of organizations (facts/platform 9.3).
import { type Static, Type as t } from "@sinclair/typebox";

export const Organization = t.Object({
  id: t.String({ format: "uuid" }),
  name: t.String({ description: "Used in paths; unique." }),
  display_name: t.String(),
  description: t.String(),
  icon: t.String({ description: "A URL or a path of this server, or empty." }),
  is_default: t.Boolean({ description: "The organization that a path may call `default`." }),
  created_at: t.String({ format: "date-time" }),
  updated_at: t.String({ format: "date-time" }),
});
export type Organization = Static<typeof Organization>;
