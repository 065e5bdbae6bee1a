/** The key `o` of the screen: the local inspector or the dashboard, in a browser. */
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createBrowserStub } from "../../../harness/agent/browser-stub.ts";
import { startSharedServer, type SharedServer } from "../../../harness/agent/shared-server.ts";
import { openScreen } from "../../../harness/screen.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

let shared: SharedServer;
beforeAll(async () => {
  shared = await startSharedServer((_request, response) => void response.end());
});
afterAll(() => shared?.[Symbol.asyncDispose]());

describe.skipIf(process.platform !== "linux")("o opens", () => {
  test("the local inspector", async () => {
    const { env, readOpened } = await createBrowserStub();
    const args = shared.getArgs("opens-inspector", "--inspect", "127.0.0.1:4400");
    await using screen = await openScreen(args, {
      token: shared.token,
      env: { ...env, DISPLAY: ":0" },
    });
    await screen.waitFor(/^Inspector {3}http:\/\/127\.0\.0\.1:\d+$/m);
    const [, url] = /^Inspector {3}(\S+)$/m.exec(screen.rows.join("\n")) ?? [];
    screen.press("o");
    await screen.waitFor(/^opening http:\/\/127\.0\.0\.1:\d+\/$/m);
    await vi.waitUntil(async () => (await readOpened()) === `${url}/`, WAIT_OPTIONS);
  });

  test("the dashboard without a local inspector", async () => {
    const { env, readOpened } = await createBrowserStub();
    await using screen = await shared.share("opens-dashboard", { env: { ...env, DISPLAY: ":0" } });
    await screen.waitFor(/o dashboard/);
    screen.press("o");
    await screen.waitFor(/^opening http/m);
    const { url } = shared.api.server;
    await vi.waitUntil(async () => (await readOpened()) === `${url}/`, WAIT_OPTIONS);
  });

  test("nothing over SSH, and shows the URL", async () => {
    const { env, readOpened } = await createBrowserStub();
    const ssh = { DISPLAY: ":10", SSH_CONNECTION: "203.0.113.7 1 203.0.113.8 22" };
    await using screen = await shared.share("opens-nothing", { env: { ...env, ...ssh } });
    screen.press("o");
    await screen.waitFor(/^No browser on this machine; open http\S+\/$/m);
    expect(await readOpened()).toBe("");
  });
});
