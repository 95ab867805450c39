#!/usr/bin/env node
// `npx slipway`: starts the program of this system, which npm has installed beside this package. Without arguments it serves.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { constants } from "node:os";

const libc = process.platform === "linux" && !process.report.getReport().header.glibcVersionRuntime ? "-musl" : "";
const system = `@slipway/${process.platform}-${process.arch}${libc}`;

let program;
try {
  program = createRequire(import.meta.url).resolve(
    `${system}/bin/slipway${process.platform === "win32" ? ".exe" : ""}`,
  );
} catch {
  process.stderr.write(
    `slipway: the package ${system} is not installed. npm leaves it out with --omit=optional, or there is none for this system.\n`,
  );
  process.exit(1);
}

const given = process.argv.slice(2);
// Before the program starts: a signal in between would end only this process.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
const child = spawn(program, given.length > 0 || process.platform === "win32" ? given : ["serve"], {
  stdio: "inherit",
});

// npx does not forward the signal that ends it, so its child processes would go on running.
const parent = process.ppid;
if (process.env.npm_command === "exec") {
  setInterval(() => process.ppid === parent || child.kill("SIGTERM"), 500).unref();
}

child.on("error", (error) => {
  process.stderr.write(`slipway: ${error.message}\n`);
  process.exit(1);
});
child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
