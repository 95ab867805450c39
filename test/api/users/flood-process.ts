// A flood of sign-ins from many addresses, as a separate process: `bun flood-process.ts URL HOW ACCOUNT`. Ninety connections send wrong
// passwords as fast as they are answered; HOW selects addresses and accounts. Prints `hot` once the server is busy, and the number of each
// response at the end of its standard input.
const [, , url = "", how = "", account = ""] = process.argv;
const CONNECTIONS = 90;

const random = (below: number): number => Math.floor(Math.random() * below);
const randomAddress = (): string => `10.${random(256)}.${random(256)}.${random(256)}`;

/** Address and account of a request of the connection with this number. */
const HOW: Record<string, (connection: number) => [string, string]> = {
  "an address each": (connection) => [`10.0.0.${connection}`, `somebody${random(1e9)}@example.com`],
  "an address for each request": () => [randomAddress(), `somebody${random(1e9)}@example.com`],
  "everybody at one account": () => [randomAddress(), account],
};
const nextCall = HOW[how];
if (!nextCall) throw new Error(`no flood "${how}"`);

const statuses: Record<number, number> = {};
let startedCount = 0;
let endedCount = false;

const flood = async (connection: number): Promise<void> => {
  while (!endedCount) {
    const [address, email] = nextCall(connection);
    const sent = fetch(new URL("/api/v2/users/login", url), {
      method: "POST",
      headers: { "content-type": "application/json", "x-forwarded-for": address },
      body: JSON.stringify({ email, password: `guess ${random(1e9)}` }),
    });
    if (++startedCount === CONNECTIONS + 4) process.stdout.write("hot\n");
    const response = await sent.catch(() => undefined);
    await response?.arrayBuffer();
    statuses[response?.status ?? 0] = (statuses[response?.status ?? 0] ?? 0) + 1;
  }
};
for (let connection = 0; connection < CONNECTIONS; connection++) void flood(connection);
await Bun.stdin.text();
endedCount = true;
process.stdout.write(`${JSON.stringify(statuses)}\n`);
process.exit(0);
