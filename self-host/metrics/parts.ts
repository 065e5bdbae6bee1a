/**
 * The parts of a server that a scrape asks for metrics. Each is asked at the same time as the others and has its own time
 * limit, so that a part that does not answer costs a scrape only its own families.
 */
import { z } from "zod";
import type { MetricFamily } from "../../shared/metrics/exposition.ts";

/** The limits of what one part may report: the parts have fewer families, and no label has more values. */
const FAMILIES_MAX = 50;
const SAMPLES_MAX = 200;
const TEXT_MAX_CHARS = 300;

const name = z.string().regex(/^[a-z][a-z0-9_]{0,99}$/);
const MetricFamilies = z
  .array(
    z.object({
      name,
      help: z.string().max(TEXT_MAX_CHARS),
      type: z.enum(["counter", "gauge", "histogram"]),
      samples: z
        .array(
          z.object({
            suffix: z.enum(["_bucket", "_sum", "_count"]).optional(),
            labels: z.record(name, z.string().max(TEXT_MAX_CHARS)).optional(),
            value: z.number(),
          }),
        )
        .max(SAMPLES_MAX),
    }),
  )
  .max(FAMILIES_MAX);

export interface MetricsPart {
  /** The value of the label `part` of `underpass_up`. */
  name: string;
  /** Rejects when the part does not answer in time. */
  read(): Promise<MetricFamily[]>;
}

/** @param text JSON of another process. @throws an error for anything but a bounded list of families. */
export function parseFamilies(text: string): MetricFamily[] {
  return MetricFamilies.parse(JSON.parse(text));
}

/** @returns the families of all parts that answered, and whether each did. */
export async function readParts(parts: readonly MetricsPart[]): Promise<MetricFamily[]> {
  const answers = await Promise.allSettled(parts.map((part) => part.read()));
  const up: MetricFamily = {
    name: "underpass_up",
    help: "Whether the part of the server answered this scrape.",
    type: "gauge",
    samples: parts.map((part, at) => ({
      labels: { part: part.name },
      value: Number(answers[at]?.status === "fulfilled"),
    })),
  };
  const families = answers.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
  return mergeFamilies([up, ...families]);
}

/** A family may appear only once, and two processes may report samples of the same one. */
function mergeFamilies(families: MetricFamily[]): MetricFamily[] {
  return [...Map.groupBy(families, (family) => family.name).values()].map((same) => ({
    ...same[0]!,
    samples: same.flatMap(({ samples }) => samples),
  }));
}
