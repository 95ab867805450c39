// Connects to a test's TLS server by name through the outbound HTTP client. A separate process, because the trusted authorities are
// determined at startup. bun outbound-tls.ts URL...
import { systemClock } from "#base/clock.ts";
import { Outbound } from "#base/outbound.ts";

const outbound = new Outbound({ clock: systemClock, allowed: ["127.0.0.0/8"], resolve: async () => ["127.0.0.1"] });
for (const url of Bun.argv.slice(2)) {
  const output = await outbound.fetch(new URL(url)).then(
    ({ text }) => text,
    (error: Error) => error.message,
  );
  process.stdout.write(`${output}\n`);
}
