// What `doctor` has found.

export type Finding = { name: string; status: "ok" | "warn" | "wrong"; detail: string };
