// Wire shapes of organizations (facts/platform 9.3).
import { type Static, Type as t } from "@sinclair/typebox";
import { named, namedObject } from "../shape-names.ts";
import { iconText, linesText, lineText } from "../text.ts";

export const Organization = namedObject("Organization", {
  id: t.String({ format: "uuid" }),
  name: t.String({ description: "The name of the organization, used in paths. Unique." }),
  display_name: t.String({ description: "The display name of the organization. If empty, its name is shown." }),
  description: t.String(),
  icon: t.String({ description: "The icon: a URL, a path on this server, or empty." }),
  is_default: t.Boolean({ description: "Whether this is the organization that `default` refers to in paths." }),
  created_at: t.String({ format: "date-time" }),
  updated_at: t.String({ format: "date-time" }),
});
export type Organization = Static<typeof Organization>;

/** Organization names follow the rule for usernames. */
const Name = t.String({
  minLength: 1,
  maxLength: 32,
  pattern: "^[a-zA-Z0-9]+(-[a-zA-Z0-9]+)*$",
  description: "The name of the organization: 1 to 32 letters, digits and single hyphens. Unique, ignoring case.",
});
const DisplayName = lineText({
  maxLength: 64,
  description: "The display name of the organization. If empty, its name is shown.",
});
const Description = linesText({ maxLength: 1000, description: "A description of the organization for its members." });
const Icon = iconText({ maxLength: 500 });

export const CreateOrganizationRequest = namedObject("CreateOrganizationRequest", {
  name: Name,
  display_name: t.Optional(DisplayName),
  description: t.Optional(Description),
  icon: t.Optional(Icon),
});

export const UpdateOrganizationRequest = named("UpdateOrganizationRequest", t.Partial(CreateOrganizationRequest));
