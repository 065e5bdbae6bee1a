import { once } from "node:events";
import { connect, type AddressInfo } from "node:net";
import { expect, test, vi } from "vitest";
import { createRedirectServer } from "../../../../../self-host/front-proxy/https/redirect-server.ts";
import { WAIT_OPTIONS } from "../../../../harness/timeouts.ts";

test("connections are counted until they end, and those beyond the limit are closed", async () => {
  let open = 0;
  const server = createRedirectServer({
    httpsPort: 443,
    findAnswer: () => undefined,
    admit: () => (open === 1 ? undefined : ((open += 1), () => void (open -= 1))),
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const silent = connect(port, "127.0.0.1");
  await vi.waitFor(() => expect(open).toBe(1), WAIT_OPTIONS);
  const refused = connect(port, "127.0.0.1").on("error", () => undefined);
  refused.write("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
  refused.resume();
  await vi.waitFor(() => expect(refused.closed).toBe(true), WAIT_OPTIONS);
  expect(refused.bytesRead).toBe(0);
  silent.destroy();
  await vi.waitFor(() => expect(open).toBe(0), WAIT_OPTIONS);
  server.close();
});

test("no response is taken for another type", async () => {
  const server = createRedirectServer({
    httpsPort: 443,
    findAnswer: (path) => (path === "/known" ? "answer" : undefined),
    admit: () => () => undefined,
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  for (const [path, status] of [
    ["/known", 200],
    ["/other", 308],
  ]) {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { redirect: "manual" });
    expect(response.status).toBe(status);
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
  }
  server.close();
});
