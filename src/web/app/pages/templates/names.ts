// What pages know of templates by name.
import type { Template } from "#schema/templates/template.ts";

/** The kind of the starter templates with VS Code in the browser. */
export const EDITOR = "code-server";

/** Whether the template was added as a starter with VS Code, and keeps its name. */
export const isEditor = ({ name }: Template): boolean => name === EDITOR || name.startsWith(`${EDITOR}-`);

/** The page that makes a workspace of the template. */
export const workspaceOf = ({ name }: Template): string => `/new?template=${encodeURIComponent(name)}`;
