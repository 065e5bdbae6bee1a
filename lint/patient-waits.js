/** Lint rule: waits of tests have a longer time limit than the default of one second, which a busy machine exceeds. */

const WAITS = new Set(["vi.waitUntil", "vi.waitFor", "expect.poll"]);

export const patientWaits = {
  meta: {
    type: "problem",
    schema: [],
    messages: {
      noTimeout: "The wait ends after a second: pass WAIT_OPTIONS (test/harness/timeouts.ts).",
    },
  },
  create(context) {
    return {
      CallExpression(node) {
        const { object, property } = node.callee;
        if (node.arguments.length !== 1 || !WAITS.has(`${object?.name}.${property?.name}`)) return;
        context.report({ node, messageId: "noTimeout" });
      },
    };
  },
};
