/** Checks dashboards of Grafana and alert rules of Prometheus against the metrics of a real server. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { z } from "zod";
import type { Exposition } from "./exposition.ts";

const Datasource = z.object({ type: z.literal("prometheus"), uid: z.literal("${datasource}") });
const GridPos = z.object({
  x: z.int().min(0).max(23),
  y: z.int().min(0),
  w: z.int().min(1).max(24),
  h: z.int().min(1),
});
const Target = z.object({
  refId: z.string().regex(/^[A-Z]$/),
  datasource: Datasource,
  expr: z.string().min(1),
  legendFormat: z.string().min(1),
});
const common = { id: z.int().positive(), title: z.string().min(1), gridPos: GridPos };
const Panel = z.discriminatedUnion("type", [
  z.object({ ...common, type: z.literal("row"), collapsed: z.literal(false) }),
  ...(["timeseries", "stat"] as const).map((type) =>
    z.object({
      ...common,
      type: z.literal(type),
      datasource: Datasource,
      targets: z.array(Target).min(1),
      fieldConfig: z.object({ defaults: z.object({ unit: z.string() }) }),
    }),
  ),
]);

/** What Grafana requires of a dashboard of schema version 39 that is imported from a file. */
export const Dashboard = z.object({
  uid: z.string().regex(/^[a-zA-Z0-9_-]{1,40}$/),
  title: z.string().min(1),
  schemaVersion: z.int().min(39),
  time: z.object({ from: z.string(), to: z.string() }),
  templating: z.object({ list: z.array(z.object({ name: z.string(), type: z.string() })).min(1) }),
  panels: z.array(Panel).min(1),
});
export type Dashboard = z.output<typeof Dashboard>;

const duration = z.string().regex(/^\d+[smhd]$/);
/** https://prometheus.io/docs/prometheus/latest/configuration/alerting_rules/ */
export const AlertRules = z.strictObject({
  groups: z.array(
    z.strictObject({
      name: z.string().min(1),
      interval: duration.optional(),
      rules: z.array(
        z.strictObject({
          alert: z.string().regex(/^[A-Za-z]+$/),
          expr: z.string().min(1),
          for: duration.optional(),
          labels: z.strictObject({ severity: z.enum(["critical", "warning"]) }),
          annotations: z.strictObject({ summary: z.string(), description: z.string() }),
        }),
      ),
    }),
  ),
});

/** @returns pairs of panels that share a cell of the grid. */
export function findOverlaps({ panels }: Dashboard): [string, string][] {
  const isApart = (a: z.output<typeof GridPos>, b: typeof a) =>
    a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
  return panels.flatMap((panel, at) =>
    panels
      .slice(at + 1)
      .filter(({ gridPos }) => !isApart(panel.gridPos, gridPos))
      .map(({ title }): [string, string] => [panel.title, title]),
  );
}

const KEYWORDS = new Set(["and", "or", "unless", "on", "ignoring", "group_left", "bool", "by"]);
const CLAUSE = /\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g;

/**
 * Small, but strict: every identifier of an expression that is neither a function nor a keyword must be the name of a
 * sample, and every label of a selector must be a label of that sample.
 */
export function findUnknownNames(expression: string, { families }: Exposition): string[] {
  const labelsByName = new Map<string, Set<string>>();
  for (const { samples } of families.values()) {
    for (const { name, labels } of samples) {
      const known = labelsByName.get(name) ?? new Set();
      for (const label of Object.keys(labels)) known.add(label);
      labelsByName.set(name, known);
    }
  }
  // Prometheus adds these to every sample.
  const isLabel = (name: string, label: string) =>
    ["job", "instance"].includes(label) || labelsByName.get(name)?.has(label) === true;
  const problems: string[] = [];
  const text = expression.replaceAll(/\[[^\]]*\]/g, "").replaceAll(CLAUSE, "");
  for (const [, name = "", call, selector = ""] of text.matchAll(
    /\b([a-zA-Z_:][\w:]*)(\s*\()?(?:\{([^}]*)\})?/g,
  )) {
    if (call !== undefined || KEYWORDS.has(name)) continue;
    if (!labelsByName.has(name)) problems.push(name);
    for (const [, label = ""] of selector.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"/g)) {
      if (!isLabel(name, label)) problems.push(`${name}{${label}}`);
    }
  }
  return problems;
}

/** The output of the real tool; null when it is not installed. */
export async function checkRules(path: string): Promise<{ code: number; output: string } | null> {
  const child = spawn("promtool", ["check", "rules", path], { stdio: ["ignore", "pipe", "pipe"] });
  const failed = once(child, "error").then(() => null);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (part: string) => (output += part));
  }
  const ended = once(child, "close").then(([code]) => ({ code: Number(code), output }));
  return Promise.race([failed, ended]);
}
