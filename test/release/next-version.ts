// The next version's program, from source. It reports 9.9.9, and its database is one migration ahead (test/binary/next-build.ts).
Object.assign(globalThis, { SLIPWAY_BUILD_VERSION: "9.9.9" });
await import("../binary/next-build.ts");
