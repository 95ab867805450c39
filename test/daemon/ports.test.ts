// Parsing the kernel's socket tables; test/api/agents/ports.test.ts uses real sockets.
import { describe, expect, test } from "bun:test";
import { ListeningPorts, parseListeners } from "#src/daemon/ports.ts";

const TABLE = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11111 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1000        0 22222 1 0000000000000000 20 4 30 10 -1
   2: 00000000000000000000000000000000:0016 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 33333 1 0 100 0 0 10 0
   3: garbage
`;

describe("the kernel's tables", () => {
  test("[PT-1] list the listening ports of both address families", () => {
    expect(parseListeners(TABLE)).toEqual([
      { port: 8080, inode: "11111", uid: 1000 },
      { port: 22, inode: "33333", uid: 0 },
    ]);
    expect(parseListeners("")).toEqual([]);
  });

  test("[PT-1] a port disappears with its program and returns with the next one", () => {
    const ports = new ListeningPorts({ hidden: new Set(), agent_id: "none", uid: process.getuid?.() ?? -1 });
    const first = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    const findPort = () => ports.list().find(({ port }) => port === first.port);
    // The port belongs to the test process, which has no agent ID.
    expect(findPort()?.process_name).not.toBe("");
    expect(findPort()).toBeDefined();
    first.stop(true);
    expect(findPort()).toBeUndefined();
    const second = Bun.listen({ hostname: "127.0.0.1", port: first.port, socket: { data() {} } });
    expect(findPort()).toBeDefined();
    second.stop(true);
  });
});
