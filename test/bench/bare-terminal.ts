// The baseline of the row `terminal`: a Bun.Terminal behind a WebSocket, without anything else. Argument: the port.
const command = ["sh", "-c", "stty raw -echo; exec cat"];

Bun.serve<{ child?: Bun.Subprocess }>({
  hostname: "127.0.0.1",
  port: Number(process.argv[2]),
  fetch: (request, server) => (server.upgrade(request, { data: {} }) ? undefined : new Response("ready")),
  websocket: {
    open(socket) {
      const data = (_: unknown, bytes: Uint8Array): void => void socket.sendBinary(bytes);
      socket.data.child = Bun.spawn(command, { detached: true, terminal: { cols: 80, rows: 24, data } });
    },
    message(socket, text) {
      socket.data.child?.terminal?.write((JSON.parse(String(text)) as { data: string }).data);
    },
    close(socket) {
      socket.data.child?.kill();
    },
  },
});
