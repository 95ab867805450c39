// One step of the schema.

export type Migration = { readonly name: string; readonly sql: string };
