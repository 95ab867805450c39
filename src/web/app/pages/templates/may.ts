// Who looks after templates: owners and template administrators of the site. The server decides; this is what is offered.
import { computed } from "@preact/signals";
import { me } from "../../data/session.ts";

export const mayManageTemplates = computed(
  () => me.value?.roles.some(({ name }) => name === "owner" || name === "template-admin") ?? false,
);
