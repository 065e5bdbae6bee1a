/** Parses Prometheus' text format, and checks it with the rules of `promtool check metrics`. */
import { spawn } from "node:child_process";
import { once } from "node:events";

interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

interface Family {
  name: string;
  type: string;
  help: string;
  samples: Sample[];
}

export interface Exposition {
  families: Map<string, Family>;
  /** The value of the one sample with this name and at least these labels. */
  value: (name: string, labels?: Record<string, string>) => number;
  sum: (name: string, labels?: Record<string, string>) => number;
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)/y;
const SUFFIXES = /_(bucket|sum|count)$/;

/** @throws Error for a line that is invalid or in the wrong place. */
export function readExposition(text: string): Exposition {
  if (!text.endsWith("\n")) throw new Error("the last line has no end");
  const families = new Map<string, Family>();
  const seen = new Set<string>();
  let family: Family | undefined;
  for (const line of text.split("\n").slice(0, -1)) {
    const [, keyword, name = "", rest = ""] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (keyword === "HELP") {
      if (families.has(name)) throw new Error(`${name} is in two places`);
      family = { name, type: "", help: rest, samples: [] };
      families.set(name, family);
    } else if (keyword === "TYPE") {
      if (family?.name !== name || family.type !== "") throw new Error(`out of place: ${line}`);
      family.type = rest;
    } else {
      const sample = readSample(line);
      const isOfFamily =
        sample.name === family?.name ||
        (family?.type === "histogram" && sample.name.replace(SUFFIXES, "") === family.name);
      if (!family || !isOfFamily) throw new Error(`without HELP and TYPE: ${line}`);
      const key = `${sample.name} ${JSON.stringify(Object.entries(sample.labels).sort())}`;
      if (seen.has(key)) throw new Error(`twice: ${line}`);
      seen.add(key);
      family.samples.push(sample);
    }
  }
  const samples = [...families.values()].flatMap((one) => one.samples);
  const matching = (name: string, labels: Record<string, string> = {}) =>
    samples.filter(
      (sample) =>
        sample.name === name &&
        Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
    );
  return {
    families,
    value(name, labels) {
      const [only, ...others] = matching(name, labels);
      if (!only || others.length > 0) throw new Error(`${others.length + 1} samples of ${name}`);
      return only.value;
    },
    sum: (name, labels) => matching(name, labels).reduce((sum, { value }) => sum + value, 0),
  };
}

function readSample(line: string): Sample {
  const [, name, labelsText = "", valueText] = SAMPLE.exec(line) ?? [];
  const value = Number(valueText);
  if (name === undefined || Number.isNaN(value)) throw new Error(`no sample: ${line}`);
  const labels: Record<string, string> = {};
  LABEL.lastIndex = 0;
  while (LABEL.lastIndex < labelsText.length) {
    const [, label, escaped] = LABEL.exec(labelsText) ?? [];
    if (label === undefined || label in labels) throw new Error(`bad labels: ${line}`);
    labels[label] = escaped!.replace(/\\(.)/g, (_, char) => (char === "n" ? "\n" : char));
  }
  return { name, labels, value };
}

/** What `promtool check metrics` would report. */
export function findProblems({ families }: Exposition): string[] {
  const problems: string[] = [];
  for (const { name, type, help, samples } of families.values()) {
    const problem = (text: string) => void problems.push(`${name}: ${text}`);
    if (!NAME.test(name)) problem("no name");
    if (help === "") problem("no help");
    if (!["counter", "gauge", "histogram"].includes(type)) problem(`type ${type}`);
    if (name.includes(type)) problem("the type is in the name");
    if (/[A-Z]/.test(name)) problem("camel case");
    if ((type === "counter") !== name.endsWith("_total")) problem("_total is for counters");
    if (type !== "histogram" && SUFFIXES.test(name)) problem("a suffix of histograms");
    if (/_(milliseconds|ms|minutes|hours|kilobytes|megabytes|bits|percent)(_|$)/.test(name)) {
      problem("not a base unit");
    }
    if (samples.some(({ value }) => value < 0)) problem("below zero");
    if (samples.some(({ labels }) => "le" in labels) && type !== "histogram") problem("label le");
    if (type !== "histogram") continue;
    // One histogram for each set of labels besides the bound.
    const getLabels = ({ labels }: Sample) =>
      JSON.stringify(
        Object.entries(labels)
          .filter(([label]) => label !== "le")
          .sort(),
      );
    for (const own of Map.groupBy(samples, getLabels).values()) {
      problems.push(...findHistogramProblems(name, own));
    }
  }
  return problems;
}

function findHistogramProblems(name: string, samples: Sample[]): string[] {
  const buckets = samples.filter((sample) => sample.name === `${name}_bucket`);
  const bounds = buckets.map(({ labels }) => (labels.le === "+Inf" ? Infinity : Number(labels.le)));
  const counts = buckets.map(({ value }) => value);
  const grows = (values: number[], strictly: boolean) =>
    values.every(
      (value, at) => at === 0 || value > values[at - 1]! || (!strictly && value === values[at - 1]),
    );
  const one = (suffix: string) => samples.filter((sample) => sample.name === name + suffix);
  const problems = [
    !grows(bounds, true) && "bounds out of order",
    !grows(counts, false) && "buckets are not cumulative",
    bounds.at(-1) !== Infinity && "no bucket +Inf",
    one("_sum").length !== 1 && "no sum",
    (one("_count").length !== 1 || one("_count")[0]!.value !== counts.at(-1)) &&
      "count is not +Inf",
  ];
  return problems.filter((problem) => problem !== false).map((problem) => `${name}: ${problem}`);
}

/** The output of the real tool; null when it is not installed. */
export async function promtool(text: string): Promise<{ code: number; output: string } | null> {
  const child = spawn("promtool", ["check", "metrics"], { stdio: ["pipe", "pipe", "pipe"] });
  const failed = once(child, "error").then(() => null);
  const closed = once(child, "close");
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (part: string) => (output += part));
  }
  child.stdin.on("error", () => undefined).end(text);
  const ended = closed.then(([code]) => ({ code: Number(code), output }));
  return Promise.race([failed, ended]);
}
