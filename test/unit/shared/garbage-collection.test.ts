import { expect, test } from "vitest";
import {
  BYTES_PER_COLLECTION,
  GarbageCollection,
  MAX_WAITING_REQUESTS,
  REQUESTS_PER_COLLECTION,
} from "../../../shared/garbage-collection.ts";

/** Counts the collections, each of which lasts for some time on a clock of its own. */
function createCollection(pauseMs: number) {
  const clock = { nowMs: 1_000_000 };
  let collections = 0;
  const collect = () => {
    collections += 1;
    clock.nowMs += pauseMs;
  };
  const collection = new GarbageCollection(1 / 20, collect, () => clock.nowMs);
  return {
    clock,
    visit: (times: number) => {
      for (let i = 0; i < times; i++) collection.countRequest();
    },
    receive: (message: string | ArrayBuffer) => collection.countMessage(message),
    read: (bytes: number) => collection.countRead(bytes),
    count: () => collections,
  };
}

test("an isolate collects garbage after a number of requests", () => {
  const { visit, count, clock } = createCollection(10);
  visit(REQUESTS_PER_COLLECTION - 1);
  expect(count()).toBe(0);
  visit(1);
  expect(count()).toBe(1);
  clock.nowMs += 1_000;
  visit(REQUESTS_PER_COLLECTION);
  expect(count()).toBe(2);
});

test("messages of WebSockets and stored values count by their bytes, together with requests", () => {
  const { visit, receive, read, count, clock } = createCollection(10);
  receive(new ArrayBuffer(BYTES_PER_COLLECTION - 1));
  expect(count()).toBe(0);
  receive("x");
  expect(count()).toBe(1);
  clock.nowMs += 1_000;
  visit(REQUESTS_PER_COLLECTION / 2);
  receive(new ArrayBuffer(BYTES_PER_COLLECTION / 4));
  read(BYTES_PER_COLLECTION / 4);
  expect(count()).toBe(2);
});

test("long collections are so rare that they take a twentieth of the time", () => {
  const { visit, count, clock } = createCollection(300);
  visit(REQUESTS_PER_COLLECTION);
  expect(count()).toBe(1);
  visit(10 * REQUESTS_PER_COLLECTION);
  expect(count()).toBe(1);
  clock.nowMs += 19 * 300;
  visit(1);
  expect(count()).toBe(2);
});

test("however long collections take, only a limited number of requests waits for one", () => {
  const { visit, count } = createCollection(60_000);
  visit(REQUESTS_PER_COLLECTION);
  expect(count()).toBe(1);
  visit(MAX_WAITING_REQUESTS - 1);
  expect(count()).toBe(1);
  visit(1);
  expect(count()).toBe(2);
});

test("without V8's function, as on Cloudflare, nothing is done", () => {
  const collection = new GarbageCollection(1 / 20, undefined, () => {
    throw new Error("the clock is not needed");
  });
  for (let i = 0; i < 2 * REQUESTS_PER_COLLECTION; i++) collection.countRequest();
});
