import { Socket } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { HandshakePace } from "../../../../../self-host/front-proxy/https/handshake-pace.ts";

test("a burst of handshakes of one source begins at once, and further ones at its rate", () => {
  const pace = new HandshakePace(10, 3);
  const reserve = (nowMs: number) => pace.reserve("192.0.2.1", nowMs);
  expect([0, 0, 0, 0, 0].map(reserve)).toEqual([0, 0, 0, 100, 200]);
  expect(reserve(250)).toBe(50);
  // After a pause it has the whole burst again.
  expect([10_000, 10_000, 10_000, 10_000].map(reserve)).toEqual([0, 0, 0, 100]);
});

test("handshakes of other sources don't wait, and those of one IPv6 network share a rate", () => {
  const pace = new HandshakePace(10, 1);
  const addresses = ["192.0.2.1", "192.0.2.2", "::ffff:192.0.2.1", "2001:db8::1", "2001:db8::2"];
  expect(addresses.map((address) => pace.reserve(address, 0))).toEqual([0, 0, 100, 0, 100]);
});

test("a clock that is set back delays no handshake", () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  onTestFinished(() => void vi.useRealTimers());
  const pace = new HandshakePace(10, 2);
  const begin = vi.fn<() => void>();
  pace.schedule(new Socket(), begin);
  vi.setSystemTime(Date.now() - 3_600_000);
  pace.schedule(new Socket(), begin);
  expect(begin).toHaveBeenCalledTimes(2);
});

test("a handshake that waits begins at its time, unless its connection ends before", () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const pace = new HandshakePace(10, 1);
  const begun: string[] = [];
  const schedule = (name: string) => {
    const connection = new Socket();
    pace.schedule(connection, () => begun.push(name));
    return connection;
  };
  schedule("first");
  const second = schedule("second");
  // An error that nothing handles would end the process.
  second.emit("error", new Error("reset"));
  schedule("third").emit("close", true);
  expect(begun).toEqual(["first"]);
  vi.advanceTimersByTime(99);
  expect(begun).toEqual(["first"]);
  vi.advanceTimersByTime(1);
  expect(begun).toEqual(["first", "second"]);
  expect([second.listenerCount("error"), second.listenerCount("close")]).toEqual([0, 0]);
  vi.advanceTimersByTime(1_000);
  expect(begun).toEqual(["first", "second"]);
});
