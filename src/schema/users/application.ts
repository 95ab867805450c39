// Wire shapes of applications (specification "Application endpoints", facts/platform 8.4).
import { type Static, Type as t } from "@sinclair/typebox";
import { namedObject } from "../named.ts";

export const ApplicationHost = namedObject("ApplicationHost", {
  host: t.String({
    description:
      "Hosts of apps and ports stand below it: `*.apps.example.com`, with the port. Empty while none is set up.",
  }),
});
export type ApplicationHost = Static<typeof ApplicationHost>;
