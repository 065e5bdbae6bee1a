/**
 * The Worker's entry point for its objects: the only way from live state to rows. The store is loaded when
 * it is first called, so that an isolate of the edge does not carry it.
 */
import { WorkerEntrypoint } from "cloudflare:workers";
import type { Route, Rows as RowsBinding, TunnelReport } from "../durable-objects/bindings.ts";
import type { Env } from "./env.ts";

export class Rows extends WorkerEntrypoint<Env> implements RowsBinding {
  async route(host: string): Promise<Route | null> {
    const [{ openDatabase }, { findRoute }] = await Promise.all([
      import("./background/outbox.ts"),
      import("./store/hostnames.ts"),
    ]);
    return findRoute(openDatabase(this.env), host);
  }

  async reportTunnel(report: TunnelReport): Promise<void> {
    const [{ openDatabase }, { reportTunnel }] = await Promise.all([
      import("./background/outbox.ts"),
      import("./store/tunnels.ts"),
    ]);
    await reportTunnel(openDatabase(this.env), report);
  }
}
