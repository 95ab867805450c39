// Asks a TLS server of a test by name through the door to the outside world; a process of its own, because which authorities are
// trusted is settled at its start. bun outbound-tls.ts URL...
import { systemClock } from "#base/clock.ts";
import { Outbound } from "#base/outbound.ts";

const door = new Outbound({ clock: systemClock, allowed: ["127.0.0.0/8"], resolve: async () => ["127.0.0.1"] });
for (const url of Bun.argv.slice(2)) {
  const said = await door.fetch(new URL(url)).then(
    ({ text }) => text,
    (error: Error) => error.message,
  );
  process.stdout.write(`${said}\n`);
}
