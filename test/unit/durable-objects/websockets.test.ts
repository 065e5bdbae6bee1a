import { describe, expect, test } from "vitest";
import { answerClose, parseClose } from "../../../durable-objects/websockets.ts";

/** The arguments of the calls of `close`. */
function getAnswers(code: number, reason: string, isClean = true): unknown[][] {
  const answers: unknown[][] = [];
  const socket = { close: (...close: unknown[]) => void answers.push(close) };
  answerClose(socket as unknown as WebSocket, parseClose(code, reason, isClean));
  return answers;
}

describe("a Close frame", () => {
  test.each([1000, 1001, 1002, 1003, 1007, 1011, 1012, 1014, 3000, 3999, 4000, 4999])(
    "with the code %i is answered with the same code and reason",
    (code) => {
      expect(getAnswers(code, "done")).toEqual([[code, "done"]]);
    },
  );

  test.each([0, 999, 1004, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535])(
    "with the code %i, which may not be sent, is answered with 1002",
    (code) => {
      expect(getAnswers(code, "")).toEqual([[1002, expect.any(String)]]);
    },
  );

  test("whose reason was not UTF-8 is answered with 1007", () => {
    expect(getAnswers(1000, "\uFFFD(")).toEqual([[1007, expect.any(String)]]);
  });

  test("without a code is answered without one, and a lost connection not at all", () => {
    expect(getAnswers(1005, "")).toEqual([[]]);
    expect(getAnswers(1006, "WebSocket disconnected", false)).toEqual([]);
  });
});
