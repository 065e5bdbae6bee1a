/**
 * Checks that response times do not reveal whether an email address has an account. Each route is called with known and
 * unknown addresses in random order. To judge the difference of the medians, the labels of the same samples are
 * shuffled: the noise is the difference that 99 of 100 shuffles stay below. The request right after each call is
 * measured too, because work that continues after a response could slow it down.
 */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { Row } from "../report.ts";
import type { BenchOptions } from "../settings.ts";
import type { BenchStack } from "../stack.ts";
import { median, round } from "../statistics.ts";

const SAMPLES_PER_SECOND = 20;
const WARM_UP_SAMPLES = 10;
/** Longer than the work that continues after a response. */
const SETTLE_MS = 40;
const SHUFFLES = 1_000;
const NOISE_QUANTILE = 0.99;
const CONFIRMED = "confirmed@example.com";
const UNCONFIRMED = "unconfirmed@example.com";
const PASSWORD = "the right password of both";

/** Routes that are called with a wrong password or code. */
const REFUSALS: Partial<Record<string, number>> = {
  "/auth/login": 401,
  "/auth/verify-email-otp": 400,
};

interface Sample {
  isKnown: boolean;
  ms: number;
  nextMs: number;
}

export async function benchEnumeration(
  { server }: BenchStack,
  { seconds }: BenchOptions,
): Promise<Row[]> {
  const database = new pg.Client({ connectionString: await server.databaseUrl() });
  await database.connect();
  for (const email of [CONFIRMED, UNCONFIRMED]) {
    await post(server.url, "/auth/signup", { email, password: PASSWORD });
  }
  await database.query("update users set email_verified_at = now() where email = $1", [CONFIRMED]);
  const routes = [
    { path: "/auth/signup", known: CONFIRMED, fields: { password: PASSWORD } },
    { path: "/auth/login", known: CONFIRMED, fields: { password: "not the right password" } },
    { path: "/auth/forgot", known: CONFIRMED, fields: {} },
    { path: "/auth/resend-verify-otp", known: UNCONFIRMED, fields: {} },
    { path: "/auth/verify-email-otp", known: UNCONFIRMED, fields: { code: "000000" } },
  ];

  const rows: Row[] = [];
  for (const { path, known, fields } of routes) {
    const samples: Sample[] = [];
    for (let taken = -WARM_UP_SAMPLES; taken < 2 * seconds * SAMPLES_PER_SECOND; taken++) {
      // Otherwise requests over the limits of reset tokens and of guesses would be refused, which is less work.
      await database.query("delete from password_resets");
      await database.query("update email_codes set attempts = 0, guesses = 0");
      await sleep(SETTLE_MS);
      const isKnown = Math.random() < 0.5;
      const email = isKnown ? known : `${crypto.randomUUID()}@example.com`;
      const ms = await measureMs(() => post(server.url, path, { email, ...fields }));
      const nextMs = await measureMs(async () => (await fetch(`${server.url}/health`)).text());
      if (taken >= 0) samples.push({ isKnown, ms, nextMs });
    }
    rows.push(compare(path, samples, ({ ms }) => ms));
    rows.push(compare(`GET /health after ${path}`, samples, ({ nextMs }) => nextMs));
  }
  await database.end();
  return rows;
}

async function post(url: string, path: string, body: object): Promise<void> {
  const answer = await fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  await answer.text();
  const isExpected = answer.ok || REFUSALS[path] === answer.status;
  if (!isExpected) throw new Error(`${path} answered ${answer.status}`);
}

async function measureMs(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

function compare(path: string, samples: Sample[], getMs: (sample: Sample) => number): Row {
  const times = samples.map(getMs);
  const labels = samples.map(({ isKnown }) => isKnown);
  const { known, unknown } = medians(times, labels);
  const shuffled = Array.from({ length: SHUFFLES }, () => {
    const { known, unknown } = medians(times, shuffle(labels));
    return Math.abs(known - unknown);
  }).sort((a, b) => a - b);
  const noise = shuffled[Math.floor(SHUFFLES * NOISE_QUANTILE)]!;
  const difference = known - unknown;
  return {
    group: "enumeration",
    path,
    samples: samples.length,
    "known p50 ms": round(known, 3),
    "unknown p50 ms": round(unknown, 3),
    "difference ms": round(difference, 3),
    "noise ms": round(noise, 3),
    verdict: Math.abs(difference) <= noise ? "within the noise" : "BEYOND THE NOISE",
  };
}

function medians(times: number[], labels: boolean[]) {
  const getMedian = (label: boolean) => median(times.filter((_, at) => labels[at] === label));
  return { known: getMedian(true), unknown: getMedian(false) };
}

function shuffle<Value>(values: Value[]): Value[] {
  const shuffled = [...values];
  for (let at = shuffled.length - 1; at > 0; at--) {
    const other = Math.floor(Math.random() * (at + 1));
    [shuffled[at], shuffled[other]] = [shuffled[other]!, shuffled[at]!];
  }
  return shuffled;
}
