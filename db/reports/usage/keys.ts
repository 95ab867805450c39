// Integer keys of people, templates and apps in usage data.

export const KEY_KINDS = { user: 0, template: 1, app: 2 } as const;

export type KeyKind = (typeof KEY_KINDS)[keyof typeof KEY_KINDS];

/** How reports display an app. */
export type AppName = { slug: string; display_name: string; icon: string; type: "builtin" | "app" };

/** Returns an app's name in the table of keys. */
export const formatAppName = ({ slug, display_name, icon, type }: AppName): string =>
  JSON.stringify([slug, display_name, icon, type]);
