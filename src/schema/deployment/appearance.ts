// Wire shape of the deployment's appearance and announcements.
import { type Static, Type as t } from "@sinclair/typebox";
import { named, namedObject } from "../shape-names.ts";
import { iconText, linesText, lineText, trimmedText } from "../text.ts";

export const Banner = namedObject("Banner", {
  enabled: t.Boolean({ description: "Whether the banner is shown." }),
  message: linesText({ maxLength: 3_000, description: "The banner's message, as plain text." }),
  background_color: t.String({
    pattern: "^$|^#[0-9a-fA-F]{6}$",
    error: "must be empty or a color such as #1f6feb",
    description: "The background color, such as `#1f6feb`; may be empty.",
  }),
});
export type Banner = Static<typeof Banner>;

const editableFields = {
  application_name: trimmedText({
    maxLength: 64,
    description: "The application name that pages show. If empty, Slipway.",
  }),
  logo_url: iconText({ maxLength: 2_048 }),
  service_banner: {
    ...Banner,
    description: "The first of the banners that pages show. It is also sent to workspace agents.",
  },
  announcement_banners: t.Array(Banner, { maxItems: 5, description: "Banners that are shown to all signed-in users." }),
};

export const Appearance = namedObject("Appearance", {
  ...editableFields,
  application_name: t.String({ description: "The application name that pages show; empty for Slipway." }),
  docs_url: t.String({ description: "The URL of this server's documentation." }),
  support_links: t.Array(t.Object({ name: lineText(), target: t.String(), icon: t.String() }), {
    description: "Always empty.",
  }),
});
export type Appearance = Static<typeof Appearance>;

export const UpdateAppearance = named("UpdateAppearance", t.Partial(t.Object(editableFields)));
export type UpdateAppearance = Static<typeof UpdateAppearance>;

export const TERMINAL_FONTS = [
  ...(["", "ibm-plex-mono", "fira-code", "source-code-pro", "jetbrains-mono", "geist-mono"] as const),
] as const;
