import { expect, test } from "vitest";
import type { Presence, WatchStatus } from "../../../../durable-objects/rpc.ts";
import { PresenceReporter } from "../../../../durable-objects/tunnel/agents/presence-reporter.ts";

test("agents that change at any moment of a report are reported", async () => {
  for (let turns = 0; turns < 12; turns++) {
    const stored = new Map<string, unknown>();
    let agentIds = ["first"];
    let newest: Presence | undefined;
    const call = Promise.withResolvers<WatchStatus>();
    const organization = {
      reportPresence(presence: Presence) {
        newest = presence;
        return call.promise;
      },
    };
    const reporter = new PresenceReporter(
      {
        get: (key: string) => structuredClone(stored.get(key)),
        put: (key: string, value: unknown) => void stored.set(key, structuredClone(value)),
      } as never,
      { ORGANIZATION: { getByName: () => organization } } as never,
      {
        listServing: () => agentIds.map((agentId) => ({ attachment: { agentId, orgId: "org" } })),
        isAnyServing: () => true,
      } as never,
      () => "tunnel",
    );
    const first = reporter.report();
    call.resolve({ version: 1, isWatched: false });
    for (let turn = 0; turn < turns; turn++) await Promise.resolve();
    agentIds = ["second"];
    await reporter.report();
    await first;
    expect([turns, newest?.agents[0]?.agentId]).toEqual([turns, "second"]);
  }
});
