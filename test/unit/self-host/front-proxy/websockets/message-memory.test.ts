/** The memory for incomplete WebSocket messages, divided among the sources of connections. */
import { expect, test } from "vitest";
import { SourceMemory } from "../../../../../shared/bounds/source-memory.ts";

test("all connections of one source hold at most half, and a new source always gets something", () => {
  const memory = new SourceMemory(1_200);
  const [first, second] = [
    memory.createReservation("attacker"),
    memory.createReservation("attacker"),
  ];
  expect(first.resize(400)).toBe(true);
  expect(second.resize(200)).toBe(true);
  expect(memory.createReservation("attacker").resize(1)).toBe(false);
  const others = ["b", "c"].map((source) => memory.createReservation(source));
  expect(others.map((other) => other.resize(200))).toEqual([true, true]);
  expect(memory.createReservation("new").resize(100)).toBe(true);
});

test("a holder's bytes are free again when the message is complete, given up or refused", () => {
  const memory = new SourceMemory(1_000);
  const [first, second] = [memory.createReservation("source"), memory.createReservation("source")];
  for (const end of [() => first.clear(), () => first.resize(501)]) {
    expect(first.resize(100)).toBe(true);
    expect(first.resize(500)).toBe(true);
    expect(second.resize(1)).toBe(false);
    end();
    expect(second.resize(500)).toBe(true);
    second.clear();
  }
});

test("a holder may hold less, also when others have taken so much that it could not take it again", () => {
  const memory = new SourceMemory(1_000);
  const [holder, other] = [memory.createReservation("a"), memory.createReservation("b")];
  expect([holder.resize(500), other.resize(250)]).toEqual([true, true]);
  expect(holder.resize(400)).toBe(true);
  holder.clear();
  expect(memory.createReservation("c").resize(375)).toBe(true);
});
