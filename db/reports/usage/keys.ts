// What the figures of use are about: people, templates and apps, each with a number.

export const KEY_KINDS = { user: 0, template: 1, app: 2 } as const;

export type KeyKind = (typeof KEY_KINDS)[keyof typeof KEY_KINDS];

/** What an app is called in reports. */
export type AppName = { slug: string; display_name: string; icon: string; type: "builtin" | "app" };

/** The name of an app among the keys. */
export const appText = ({ slug, display_name, icon, type }: AppName): string =>
  JSON.stringify([slug, display_name, icon, type]);
