/** The memory for heads of requests that never end. */
import { expect, test } from "vitest";
import { HeadBuffer } from "../../../../../self-host/front-proxy/http1/head-buffer.ts";
import { INCOMPLETE_HEADS_MAX_BYTES } from "../../../../../self-host/front-proxy/limits.ts";
import { HEAD_MAX_BYTES } from "../../../../../self-host/front-proxy/http1/request-head.ts";

test("the incomplete heads of all connections together are bounded, and complete ones still pass", () => {
  const part = Buffer.alloc(HEAD_MAX_BYTES, "a");
  const heads: HeadBuffer[] = [];
  let head = new HeadBuffer();
  while ((head.add(part), !head.isTooLarge)) {
    heads.push(head);
    head = new HeadBuffer();
  }
  expect(heads).toHaveLength(INCOMPLETE_HEADS_MAX_BYTES / HEAD_MAX_BYTES);
  expect(new HeadBuffer().add(Buffer.from("GET / HTTP/1.1\r\n\r\n"))).toBeDefined();
  for (const held of heads) held.clear();
  const next = new HeadBuffer();
  next.add(part);
  expect(next.isTooLarge).toBe(false);
  next.clear();
});

test("a head that is too large takes no memory from those of others", () => {
  const half = Buffer.alloc(HEAD_MAX_BYTES / 2 + 1, "a");
  const refused = Array.from({ length: INCOMPLETE_HEADS_MAX_BYTES / half.length }, () => {
    const head = new HeadBuffer();
    head.add(half);
    head.add(half);
    return head;
  });
  expect(refused.every(({ isTooLarge }) => isTooLarge)).toBe(true);
  const next = new HeadBuffer();
  next.add(half);
  expect(next.isTooLarge).toBe(false);
  next.clear();
});
