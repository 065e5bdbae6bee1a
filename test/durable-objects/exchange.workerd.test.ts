import { expect, test } from "vitest";
import { LiveTunnel } from "../harness/live-tunnel.ts";
import { rows } from "../harness/objects.ts";

test("a request reaches the agent, and its answer the visitor", async () => {
  const tunnel = new LiveTunnel();
  const agent = await tunnel.agent();
  const answer = tunnel.visit("/a?b=%2f", { headers: { "x-test": "1" } });
  const asked = await agent.asked();
  expect(asked).toMatchObject({ method: "GET", target: "/a?b=%2f" });
  agent.answer(asked.stream, 418, ["x-answer", "2"], "short and stout");
  const { status, headers } = await answer;
  expect(status).toBe(418);
  expect(headers.get("x-answer")).toBe("2");
  expect(await (await answer).text()).toBe("short and stout");
  console.log(JSON.stringify(rows));
});
