import { expect, test } from "vitest";
import { lastCapture, setCaptureSettings } from "../../../harness/workerd/live-captures.ts";
import { LiveTunnel } from "../../../harness/workerd/live-tunnel.ts";

test("redacted headers are replaced before anything is stored, in any spelling that a local server may read, on both sides", async () => {
  const tunnel = new LiveTunnel();
  const agent = await tunnel.agent();
  const visit = async () => {
    const answer = tunnel.visit("/", {
      headers: { authorization: "Bearer s", "X-Key": "k", X_Key: "u" },
    });
    const { stream, pairs } = await agent.nextRequest();
    expect(pairs).toContain("Bearer s");
    agent.respond(
      stream,
      200,
      ["Set-Cookie", "a=1", "X-KEY", "k2", "X_KEY", "u2", "x-plain", "p"],
      "",
    );
    expect((await answer).headers.get("x-key")).toBe("k2");
    return lastCapture(tunnel);
  };
  const before = await visit();
  expect(before.request_headers).toMatchObject({ authorization: "[redacted]", "x-key": "k" });
  expect(before.response_headers).toMatchObject({ "set-cookie": "[redacted]", "x-key": "k2" });
  expect([before.request_headers["x_key"], before.response_headers["x_key"]]).toEqual(["u", "u2"]);
  await setCaptureSettings(tunnel, { redactHeaders: ["x-key"] });
  const after = await visit();
  expect(after.request_headers).toMatchObject({
    authorization: "Bearer s",
    "x-key": "[redacted]",
    x_key: "[redacted]",
  });
  expect(after.response_headers).toMatchObject({
    "x-key": "[redacted]",
    x_key: "[redacted]",
    "x-plain": "p",
  });
  await setCaptureSettings(tunnel, { redactHeaders: ["x_key"] });
  expect((await visit()).request_headers).toMatchObject({ "x-key": "[redacted]" });
});
