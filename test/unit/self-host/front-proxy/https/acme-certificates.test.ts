import { beforeEach, expect, test, vi } from "vitest";
import { AcmeCertificates } from "../../../../../self-host/front-proxy/https/acme/acme-certificates.ts";
import type { KeyPair } from "../../../../../self-host/front-proxy/https/certificate-files.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../../../shared/time.ts";
import { createCertificate } from "../../../../harness/fakes/certificate.ts";
import { WAIT_OPTIONS } from "../../../../harness/timeouts.ts";

const LIFETIME_MS = 90 * DAY_MS;

beforeEach(() => {
  vi.spyOn(console, "log").mockReturnValue();
  vi.spyOn(console, "error").mockReturnValue();
});

function create() {
  const clock = { nowMs: Date.now() };
  const stored = new Map<string, KeyPair>();
  const allowed = new Set<string>();
  const issue = vi.fn((commonName: string) => {
    const validity = { validFromMs: clock.nowMs, validToMs: clock.nowMs + LIFETIME_MS };
    return Promise.resolve(createCertificate({ commonName, ...validity }));
  });
  const isAllowed = vi.fn((name: string) => Promise.resolve(allowed.has(name)));
  const store = {
    listNames: () => Promise.resolve([...stored.keys()]),
    read: (name: string) => Promise.resolve(stored.get(name)),
    write: (name: string, keyPair: KeyPair) => Promise.resolve(void stored.set(name, keyPair)),
    remove: (name: string) => Promise.resolve(void stored.delete(name)),
  };
  const certificates = new AcmeCertificates({ store, issue, isAllowed, now: () => clock.nowMs });
  return { certificates, clock, stored, store, allowed, issue, isAllowed };
}

test("a certificate is renewed when a third of its time is left, and the new one is used from then on", async () => {
  const { certificates, clock, allowed, issue } = create();
  allowed.add("a.example");
  const first = await certificates.getContext("a.example");
  clock.nowMs += (LIFETIME_MS * 2) / 3 - MINUTE_MS;
  await certificates.renewAll();
  expect(issue).toHaveBeenCalledTimes(1);
  clock.nowMs += 2 * MINUTE_MS;
  await certificates.renewAll();
  expect(issue).toHaveBeenCalledTimes(2);
  const renewed = await certificates.getContext("a.example");
  expect(renewed).toBeDefined();
  expect(renewed).not.toBe(first);
});

test("the certificate of a host that is no longer served is kept until it expires, and not renewed", async () => {
  const { certificates, clock, stored, allowed, issue } = create();
  allowed.add("a.example");
  await certificates.getContext("a.example");
  allowed.delete("a.example");
  clock.nowMs += LIFETIME_MS - HOUR_MS;
  await certificates.renewAll();
  expect([...stored.keys()]).toEqual(["a.example"]);
  clock.nowMs += 2 * HOUR_MS;
  await certificates.renewAll();
  expect([...stored.keys()]).toEqual([]);
  expect(issue).toHaveBeenCalledTimes(1);
  expect(await certificates.getContext("a.example")).toBeUndefined();
});

test("a failed renewal leaves the old certificate in use, and is repeated after some minutes", async () => {
  const { certificates, clock, allowed, issue } = create();
  allowed.add("a.example");
  const first = await certificates.getContext("a.example");
  clock.nowMs += LIFETIME_MS - DAY_MS;
  issue.mockRejectedValueOnce(new Error("too many orders"));
  await certificates.renewAll();
  expect(await certificates.getContext("a.example")).toBe(first);
  await certificates.renewAll();
  expect(issue).toHaveBeenCalledTimes(2);
  clock.nowMs += 15 * MINUTE_MS + 1;
  await certificates.renewAll();
  expect(issue).toHaveBeenCalledTimes(3);
  expect(await certificates.getContext("a.example")).not.toBe(first);
});

test("a name whose look-up fails does not prevent the renewal of the next one", async () => {
  const { certificates, clock, allowed, issue, isAllowed } = create();
  for (const name of ["a.example", "b.example", "c.example"]) {
    allowed.add(name);
    await certificates.getContext(name);
  }
  clock.nowMs += LIFETIME_MS - DAY_MS;
  isAllowed.mockClear().mockRejectedValueOnce(new Error("answered with 500"));
  await certificates.renewAll();
  expect(isAllowed.mock.calls).toEqual([["a.example"], ["b.example"], ["c.example"]]);
  expect(issue).toHaveBeenCalledTimes(5);
});

test("a name does not wait longer for its certificate because the clock was set back", async () => {
  const { certificates, clock, allowed, issue } = create();
  allowed.add("a.example");
  issue.mockRejectedValueOnce(new Error("the authority is down"));
  expect(await certificates.getContext("a.example")).toBeUndefined();
  expect(await certificates.getContext("a.example")).toBeUndefined();
  clock.nowMs -= DAY_MS;
  expect(await certificates.getContext("a.example")).toBeDefined();
});

test("a file that can't be read is replaced by a new certificate", async () => {
  const { certificates, stored, allowed, issue } = create();
  allowed.add("a.example");
  stored.set("a.example", { cert: "no certificate", key: "no key" });
  expect(await certificates.getContext("a.example")).toBeDefined();
  expect(issue).toHaveBeenCalledTimes(1);
});

test("a certificate that can't be stored is used all the same", async () => {
  const { certificates, store, allowed, issue } = create();
  allowed.add("a.example");
  vi.spyOn(store, "write").mockRejectedValue(new Error("no space left on device"));
  const context = await certificates.getContext("a.example");
  expect(context).toBeDefined();
  expect(await certificates.getContext("a.example")).toBe(context);
  expect(issue).toHaveBeenCalledTimes(1);
});

test("all names of the API get certificates at the start, one after the other", async () => {
  const { certificates, stored, allowed, issue } = create();
  const names = Array.from({ length: 6 }, (_, i) => `api${i}.example`);
  for (const name of names) allowed.add(name);
  certificates.start([...names, "127.0.0.1"]);
  await vi.waitFor(() => expect([...stored.keys()]).toEqual(names), WAIT_OPTIONS);
  expect(issue).toHaveBeenCalledTimes(6);
});

test("names that can't be those of hosts are not even looked up", async () => {
  const { certificates, isAllowed } = create();
  const names = [
    "",
    "localhost",
    "127.0.0.1",
    "../a.example",
    "a..example",
    "*.example",
    "_account",
  ];
  for (const name of [...names, `${"a".repeat(64)}.example`, `${"a.".repeat(126)}example`])
    expect(await certificates.getContext(name)).toBeUndefined();
  expect(isAllowed).not.toHaveBeenCalled();
});

test("however many unknown names are named at once, few are looked up, and those with a certificate are served", async () => {
  const { certificates, clock, allowed, isAllowed } = create();
  allowed.add("a.example");
  await certificates.getContext("a.example");
  isAllowed.mockClear();
  const held = Promise.withResolvers<boolean>();
  isAllowed.mockReturnValue(held.promise);
  const unknown = Array.from({ length: 100 }, (_, i) => certificates.getContext(`n${i}.example`));
  expect(await certificates.getContext("a.example")).toBeDefined();
  await vi.waitFor(() => expect(isAllowed).toHaveBeenCalledTimes(16), WAIT_OPTIONS);
  held.resolve(false);
  expect(new Set(await Promise.all(unknown))).toEqual(new Set([undefined]));
  // A name that was looked up is unknown for some seconds.
  isAllowed.mockClear().mockResolvedValue(false);
  await certificates.getContext("n0.example");
  expect(isAllowed).not.toHaveBeenCalled();
  clock.nowMs += 10_001;
  await certificates.getContext("n0.example");
  expect(isAllowed).toHaveBeenCalledTimes(1);
});

test("at most four certificates are ordered at once", async () => {
  const { certificates, allowed, issue } = create();
  const held = Promise.withResolvers<never>();
  issue.mockReturnValue(held.promise);
  const names = Array.from({ length: 6 }, (_, i) => `n${i}.example`);
  for (const name of names) allowed.add(name);
  const all = names.map((name) => certificates.getContext(name));
  await vi.waitFor(() => expect(issue).toHaveBeenCalledTimes(4), WAIT_OPTIONS);
  held.reject(new Error("the authority is down"));
  expect(await Promise.all(all)).toEqual(names.map(() => undefined));
  expect(issue).toHaveBeenCalledTimes(4);
});
