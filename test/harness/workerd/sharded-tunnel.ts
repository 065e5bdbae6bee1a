/** A tunnel whose visitors are spread over several objects, with an agent at each. For tests inside workerd. */
import { vi } from "vitest";
import { runDurableObjectAlarm } from "cloudflare:test";
import type { TunnelReport } from "../../../durable-objects/rpc.ts";
import { WAIT_OPTIONS } from "../timeouts.ts";
import { newVersion, runVisit, type VisitOutcome } from "./gated-tunnel.ts";
import { LiveTunnel, type TestAgent } from "./live-tunnel.ts";
import { rows } from "./objects.ts";

export class ShardedTunnel {
  /** The first one is the one that workers call. */
  readonly objects: LiveTunnel[];
  agents: TestAgent[] = [];

  constructor(count: number) {
    const first = new LiveTunnel();
    const others = Array.from({ length: count - 1 }, (_, at) => new LiveTunnel(first.id, at + 1));
    this.objects = [first, ...others];
  }

  /** With an agent at each object. */
  static async open(count = 4): Promise<ShardedTunnel> {
    const tunnel = new ShardedTunnel(count);
    await tunnel.setCount(count);
    for (const object of tunnel.objects) tunnel.agents.push(await object.agent());
    return tunnel;
  }

  get first(): LiveTunnel {
    return this.objects[0]!;
  }

  async setCount(count: number): Promise<void> {
    const address = { tunnelId: this.first.id, shard: 0 };
    await this.first.stub.setShards(address, { version: newVersion(), count });
  }

  /** A visitor of one object, whose agent responds if the request is admitted. */
  visit(shard: number, path = "/"): Promise<VisitOutcome> {
    return runVisit(this.objects[shard]!, this.agents[shard]!, path);
  }

  /** The result of a visitor's request to each object. */
  async visitEach(path = "/"): Promise<(string | null)[]> {
    const outcomes = await Promise.all(this.objects.map((_, shard) => this.visit(shard, path)));
    return outcomes.map(({ code }) => code);
  }

  /** Runs the alarms of all objects, the first one's last, until the row has this report. */
  async waitForReport(isWanted: (report: TunnelReport) => boolean): Promise<TunnelReport> {
    return vi.waitUntil(async () => {
      for (const { stub } of [...this.objects].reverse()) await runDurableObjectAlarm(stub);
      const reports = rows.reports.filter(({ tunnelId }) => tunnelId === this.first.id);
      const newest = reports.at(-1);
      return newest && isWanted(newest) ? newest : undefined;
    }, WAIT_OPTIONS);
  }
}
