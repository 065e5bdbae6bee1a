/** A configuration of `underpass start` that can't be applied. */
import { expect, test } from "vitest";
import { parseConfig, type TunnelEntry } from "../../../agent/config/parse-config.ts";
import { TunnelGroup, type GroupConfig } from "../../../agent/start/tunnel-group.ts";
import { AGENT_GATES_MAX_CHARS } from "../../../protocol/schemas/tunnels/agent-gates.ts";

/** Nothing listens there, so the tunnels wait. */
const ACCESS = {
  server: new URL("http://127.0.0.1:1"),
  token: Buffer.from("token"),
  renewal: "Get a new token.",
  authorities: undefined,
};

async function buildConfig(...entries: string[]): Promise<GroupConfig> {
  const text = ["version: 1", "tunnels:", ...entries.map((entry) => `  ${entry}`)].join("\n");
  return { ...ACCESS, entries: (await parseConfig(text, "/project/underpass.yml")).tunnels };
}

/** The policy of the tunnel `name` is longer than what the agent may send. */
function withLongPolicy({ entries, ...access }: GroupConfig, name: string): GroupConfig {
  const value = "x".repeat(AGENT_GATES_MAX_CHARS);
  const policy = { actions: [{ kind: "header_set" as const, name: "x-long", value }] };
  const change = (entry: TunnelEntry): TunnelEntry =>
    entry.name === name && entry.protocol === "http"
      ? { ...entry, definition: { ...entry.definition, gates: { policy } } }
      : entry;
  return { ...access, entries: entries.map(change) };
}

test("a tunnel whose policy is too long leaves all tunnels as they are, and later changes are applied", async () => {
  const group = new TunnelGroup();
  const events: string[] = [];
  group.on("opened", ({ name }) => events.push(`opened ${name}`));
  group.on("closed", (name) => events.push(`closed ${name}`));
  await group.apply(await buildConfig("web: {local: 3000}", "api: {local: 3001}"));
  const changed = await buildConfig("web: {local: 4000}", "new: {local: 4001}");
  await expect(group.apply(withLongPolicy(changed, "web"))).rejects.toThrow(
    "the policy must have at most 48 KiB as JSON",
  );
  expect(events).toEqual(["opened web", "opened api"]);
  const changes = { opened: ["new"], reopened: ["web"], closed: ["api"] };
  expect(await group.apply(changed)).toEqual(changes);
  await group.close();
});
