// A flood of sign-ins from many addresses, as a separate process: `bun flood-process.ts URL PATTERN ACCOUNT`. Ninety connections send wrong
// passwords as fast as the server responds; PATTERN selects addresses and accounts. Prints `hot` once the server is busy, and the count of
// each status when its standard input ends.
const [, , url = "", pattern = "", account = ""] = process.argv;
const CONNECTIONS = 90;

const drawBelow = (limit: number): number => Math.floor(Math.random() * limit);
const randomAddress = (): string => `10.${drawBelow(256)}.${drawBelow(256)}.${drawBelow(256)}`;

/** The address and account of the next request, by the number of the connection. */
const PATTERNS: Record<string, (connection: number) => [string, string]> = {
  "an address each": (connection) => [`10.0.0.${connection}`, `somebody${drawBelow(1e9)}@example.com`],
  "an address for each request": () => [randomAddress(), `somebody${drawBelow(1e9)}@example.com`],
  "everybody at one account": () => [randomAddress(), account],
};
const pickTarget = PATTERNS[pattern];
if (!pickTarget) throw new Error(`unknown pattern "${pattern}"`);

const statuses: Record<number, number> = {};
let startedCount = 0;
let isEnded = false;

const flood = async (connection: number): Promise<void> => {
  while (!isEnded) {
    const [address, email] = pickTarget(connection);
    const pending = fetch(new URL("/api/v2/users/login", url), {
      method: "POST",
      headers: { "content-type": "application/json", "x-forwarded-for": address },
      body: JSON.stringify({ email, password: `guess ${drawBelow(1e9)}` }),
    });
    if (++startedCount === CONNECTIONS + 4) process.stdout.write("hot\n");
    const response = await pending.catch(() => undefined);
    await response?.arrayBuffer();
    statuses[response?.status ?? 0] = (statuses[response?.status ?? 0] ?? 0) + 1;
  }
};
for (let connection = 0; connection < CONNECTIONS; connection++) void flood(connection);
await Bun.stdin.text();
isEnded = true;
process.stdout.write(`${JSON.stringify(statuses)}\n`);
process.exit(0);
