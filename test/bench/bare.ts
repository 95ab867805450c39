// The baseline of the start row: the smallest server that Bun can compile. run.ts compiles it to a binary. Argument: the port.
Bun.serve({ port: Number(process.argv[2]), hostname: "127.0.0.1", fetch: () => new Response("ok") });
