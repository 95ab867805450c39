// The program of the version after this one, from source: it says 9.9.9, and its database is one step ahead (test/binary/next-build.ts).
Object.assign(globalThis, { SLIPWAY_BUILD_VERSION: "9.9.9" });
await import("../binary/next-build.ts");
