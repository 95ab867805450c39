// A result of `doctor`.

export type Finding = { name: string; status: "ok" | "warn" | "wrong"; detail: string };
