// Where workspaces of a template run, and how many people use it, in words. Pure.
import type { Template } from "#schema/templates/template.ts";

const PLACES: Readonly<Record<string, string>> = {
  local: "the server's machine",
  docker: "Docker",
  terraform: "Terraform",
  external: "a worker",
};

/** Names the place by the template's provisioner; one that is not known keeps its own name. */
export const formatPlace = ({ provisioner }: Pick<Template, "provisioner">): string =>
  PLACES[provisioner] ?? provisioner;

/** How many people have a workspace of it. */
export const formatUse = ({ active_user_count: count }: Pick<Template, "active_user_count">): string =>
  count === 0 ? "No workspaces yet." : count === 1 ? "Used by 1 person." : `Used by ${count} people.`;
