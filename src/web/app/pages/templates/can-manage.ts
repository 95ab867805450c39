// Decides whether the user can manage templates: owners and template administrators of the site. The server enforces it; this only selects
// what the pages offer.
import { computed } from "@preact/signals";
import { me } from "../../data/session.ts";

export const canManageTemplates = computed(
  () => me.value?.roles.some(({ name }) => name === "owner" || name === "template-admin") ?? false,
);
