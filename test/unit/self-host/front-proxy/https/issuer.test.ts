/** Orders whose program, or whose certificate authority, fails. */
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { Issuer } from "../../../../../self-host/front-proxy/https/acme/issuer.ts";

const { execPath } = process;
afterEach(() => {
  process.execPath = execPath;
});

const account = { directoryUrl: "http://127.0.0.1:1/", email: null, accountKey: "" };

// Vitest fails on errors and rejections that nothing handles: they would end the front proxy.
test.each(["/nonexistent/node", "/bin/false"])(
  "a program that can't run (%s) fails its order only",
  async (path) => {
    process.execPath = path;
    await expect(new Issuer(account).issue("a.example")).rejects.toThrow();
  },
);

test("an authority that never answers fails its order after a while, and the reason says so", async () => {
  const silent = createServer().listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  const issuer = new Issuer({ ...account, directoryUrl: `http://127.0.0.1:${port}/` }, 300);
  await expect(issuer.issue("a.example")).rejects.toThrow("it took longer than 0.3 seconds");
  silent.close();
});
