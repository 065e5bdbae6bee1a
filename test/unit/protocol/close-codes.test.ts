import { expect, test } from "vitest";
import {
  CLOSE,
  findCloseName,
  shouldReconnect,
  type CloseName,
} from "../../../protocol/wire/close-codes.ts";

test("every close code is unique and in the range for applications", () => {
  const codes = Object.values(CLOSE);
  expect(new Set(codes).size).toBe(codes.length);
  for (const code of codes) expect(code >= 4000 && code <= 4999).toBe(true);
});

test("names are found by their codes", () => {
  for (const name of Object.keys(CLOSE) as CloseName[])
    expect(findCloseName(CLOSE[name])).toBe(name);
  expect(findCloseName(1000)).toBeNull();
  expect(findCloseName(4999)).toBeNull();
});

test("an agent reconnects after a lost connection and a restart, and not after a refusal", () => {
  const retried = (Object.keys(CLOSE) as CloseName[]).filter((name) =>
    shouldReconnect(CLOSE[name]),
  );
  expect(retried.sort()).toEqual([
    "connection_ended",
    "going_away",
    "heartbeat_timeout",
    "internal",
    "overloaded",
    "port_unusable",
    "server_changed",
    "tunnel_stopped",
  ]);
  // Codes of the network, of a proxy or of the platform, which mean nothing about the tunnel.
  for (const code of [1000, 1001, 1005, 1006, 1011, 1012, 1013, 4999])
    expect(shouldReconnect(code)).toBe(true);
});
